import type {
  Allocation,
  Instance,
  RunKey,
} from "../../../services/orchestrator/engines/engine.ts";

/** The calls of an engine host: POST with a JSON array of arguments, answered with JSON. */
export interface EngineCalls {
  capacity: [];
  ensureRunning: [Allocation];
  stop: [RunKey, number];
  remove: [string];
  list: [];
  /** Cuts the host off from orchestrators, or ends that. */
  setAvailable: [boolean];
}

/** Path of changes, one sandbox id a line. */
export const WATCH = "/watch";

/** What an error says of itself, by its name in engine.ts. */
export interface Failure {
  name: string;
  message: string;
}

/** One effective start, as the host writes it down; outlives the host. */
export interface LedgerEntry {
  /** Of the host's life: its machines go with it. */
  life: string;
  sandboxId: string;
  generation: number;
  /** Unix milliseconds. */
  startedAt: number;
}

/** An instance after its journey as JSON, where dates are text. */
export function reviveInstance(instance: Instance): Instance {
  const { startedAt, endedAt, workloadEndedAt } = instance;
  const date = (value: Date | null) => value && new Date(value);
  return {
    ...instance,
    startedAt: date(startedAt),
    endedAt: date(endedAt),
    workloadEndedAt: date(workloadEndedAt),
  };
}
