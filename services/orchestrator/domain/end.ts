import type { Instance } from "../engines/engine.ts";

/** How a run ended, as it is reported. */
export interface End {
  /** The engine's clock; null where nobody saw it. */
  endedAt: Date | null;
  cause:
    | "exited"
    | "crashed"
    | "out_of_memory"
    | "lost"
    | "start_failed"
    | "stopped"
    | "limit_reached";
  /** For the sandbox's owner. */
  message: string;
}

/** Why a machine that ended by itself is down. Pure. */
export function endOf({ endedAt, exitCode, outOfMemory }: Instance): End {
  if (outOfMemory)
    return { endedAt, cause: "out_of_memory", message: "the machine ran out of memory" };
  if (exitCode === 0) return { endedAt, cause: "exited", message: "the machine shut down" };
  return { endedAt, cause: "crashed", message: `the machine ended with exit code ${exitCode}` };
}

/** The engine has no such machine any more. Pure. */
export function lostMachine(): End {
  return { endedAt: null, cause: "lost", message: "the engine lost the machine" };
}

export function startFailed(message: string): End {
  return { endedAt: null, cause: "start_failed", message };
}

export function stoppedMachine(instance: Instance | undefined): End {
  return { endedAt: instance?.endedAt ?? null, cause: "stopped", message: "stopped" };
}

export function limitReached(instance: Instance | undefined): End {
  const message = "the sandbox reached its time limit";
  return { endedAt: instance?.endedAt ?? null, cause: "limit_reached", message };
}
