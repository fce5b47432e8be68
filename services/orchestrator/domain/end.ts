import type { Instance } from "../engines/engine.ts";

/** How a run ended, as it is reported. */
export interface End {
  /** The engine's clock, or when the machine was last seen up; null where nobody saw it. */
  endedAt: Date | null;
  cause:
    | "exited"
    | "crashed"
    | "out_of_memory"
    | "lost"
    | "start_failed"
    | "stopped"
    | "limit_reached"
    | "stop_failed";
  /** For the sandbox's owner. */
  message: string;
}

const KILLED = 128 + 9;
const TERMINATED = 128 + 15;

/** Why a machine that nobody here stopped is down. Pure. */
export function endOf({ endedAt, exitCode, outOfMemory }: Instance): End {
  if (outOfMemory)
    return { endedAt, cause: "out_of_memory", message: "the machine ran out of memory" };
  if (exitCode === 0) return { endedAt, cause: "exited", message: "the machine shut down" };
  // By the host's operator, or by a daemon that begins anew: its owner did not want that.
  if (exitCode === TERMINATED)
    return { endedAt, cause: "crashed", message: "the machine was shut down from outside" };
  if (exitCode === KILLED) return { endedAt, cause: "crashed", message: "the machine was killed" };
  return { endedAt, cause: "crashed", message: `the machine ended with exit code ${exitCode}` };
}

/** The engine has no such machine any more; `seenAt` is when it last had. Pure. */
export function lostMachine(seenAt: Date | null): End {
  return { endedAt: seenAt, cause: "lost", message: "the engine lost the machine" };
}

export function startFailed(message: string): End {
  return { endedAt: null, cause: "start_failed", message };
}

export function stopFailed(secs: number): End {
  const message = `the machine could not be stopped within ${secs} s`;
  return { endedAt: null, cause: "stop_failed", message };
}

export function stoppedMachine(instance: Instance | undefined): End {
  return { endedAt: instance?.endedAt ?? null, cause: "stopped", message: "stopped" };
}

export function limitReached(instance: Instance | undefined): End {
  const message = "the sandbox reached its time limit";
  return { endedAt: instance?.endedAt ?? null, cause: "limit_reached", message };
}
