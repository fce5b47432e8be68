import type { Sandbox, Status } from "./sandbox.ts";

export type Action = "start" | "stop" | "destroy";

/** Where a verb takes a sandbox; a status that is missing refuses the verb. */
const TRANSITIONS: Record<Action, Partial<Record<Status, Status | "gone">>> = {
  start: { created: "starting", stopped: "starting", failed: "starting" },
  stop: { starting: "stopping", running: "stopping" },
  destroy: {
    created: "gone",
    starting: "gone",
    running: "gone",
    stopping: "gone",
    stopped: "gone",
    failed: "gone",
  },
};

/** The statuses from which a verb is allowed. */
export function allowedFrom(action: Action): Status[] {
  // Object.keys forgets the key type that the table has.
  return Object.keys(TRANSITIONS[action]) as Status[];
}

/**
 * Whether this sandbox refuses the verb as it now is. An ephemeral sandbox that has ended is
 * about to go, so it does not start again.
 */
export function refuses(action: Action, sandbox: Pick<Sandbox, "status" | "ephemeral">): boolean {
  const { status, ephemeral } = sandbox;
  if (action === "start" && ephemeral && (status === "stopped" || status === "failed")) return true;
  return !(status in TRANSITIONS[action]);
}

/** The statuses in which a sandbox holds compute. */
export const HOLDS_COMPUTE: readonly Status[] = ["starting", "running", "stopping"];

/** The statuses in which a sandbox holds one of its organization's places to run: from the start to the stop, as admitted. */
export const HOLDS_PLACE: readonly Status[] = ["starting", "running"];

/** Why a machine is down. */
export type EndCause =
  | "exited"
  | "crashed"
  | "out_of_memory"
  | "lost"
  | "start_failed"
  | "stopped"
  | "limit_reached"
  | "stop_failed";

/**
 * The status a run ends in when nobody had asked it to stop. A stop that was asked for ends stopped whatever
 * the machine did, but not where the engine did not get it done.
 */
export const OUTCOMES: Record<EndCause, "stopped" | "failed"> = {
  exited: "stopped",
  stopped: "stopped",
  limit_reached: "stopped",
  crashed: "failed",
  out_of_memory: "failed",
  lost: "failed",
  start_failed: "failed",
  stop_failed: "failed",
};
