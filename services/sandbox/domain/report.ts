import type { SandboxContext } from "../context.ts";
import type { Reported } from "../store.ts";
import { type EndCause, OUTCOMES } from "./lifecycle.ts";
import type { Change, Lease, StatusReason } from "./sandbox.ts";

const MOST_MESSAGE = 4_000;

/** What an engine did to a run, or could not do. */
export type Observation =
  | { kind: "placed" }
  | { kind: "waiting"; reason: StatusReason }
  | { kind: "running"; startedAt: Date }
  | { kind: "workload_ended"; endedAt: Date }
  | { kind: "ended"; endedAt: Date | null; cause: EndCause; message: string }
  | { kind: "removed" };

/**
 * @param lease of the orchestrator that reports; null: not asked for
 * @returns whether it changed anything: a late or repeated report, or one of a replaced leader, does not
 */
export async function report(
  ctx: SandboxContext,
  sandboxId: string,
  generation: number,
  observation: Observation,
  lease: Lease | null = null,
): Promise<boolean> {
  const of = { sandboxId, generation, lease };
  if (observation.kind === "removed") return ctx.store.reportRemoved(of);
  const change = await record(ctx, of, observation);
  if (change) ctx.changes.publish(change);
  return change !== undefined;
}

function record(
  { store, lingerSecs }: SandboxContext,
  of: Reported,
  observation: Exclude<Observation, { kind: "removed" }>,
): Promise<Change | undefined> {
  switch (observation.kind) {
    case "placed":
      return store.reportPlacement(of, null);
    case "waiting":
      return store.reportPlacement(of, observation.reason);
    case "running":
      return store.reportRunning(of, observation.startedAt);
    case "workload_ended":
      return store.reportWorkloadEnded(of, observation.endedAt);
    case "ended": {
      const { endedAt, cause } = observation;
      const outcome = OUTCOMES[cause];
      const despiteStop = cause === "stop_failed";
      const message = readable(observation.message);
      const end = { endedAt, outcome, despiteStop, by: endedBy(cause), message, lingerSecs };
      return store.reportEnded(of, end);
    }
  }
}

function endedBy(cause: EndCause): "engine" | "engine_lost" | "limit" {
  if (cause === "limit_reached") return "limit";
  return cause === "lost" ? "engine_lost" : "engine";
}

// An engine may quote a program's output: whatever it is, the report has to be kept.
function readable(message: string): string {
  const text = message.replaceAll("\0", "");
  return text.length > MOST_MESSAGE ? `${text.slice(0, MOST_MESSAGE)}…` : text;
}
