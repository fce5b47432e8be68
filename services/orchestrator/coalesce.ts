import { forAll } from "../../runtime/current-call.ts";

/** A task that many ask for and that runs once at a time. */
export interface Coalesced {
  /** Runs the task; calls while it runs become one more run. */
  call(): void;
  /** Begins no further run, and waits for the one under way. */
  stop(): Promise<void>;
}

/** @param onError gets what the task throws; it runs again when it is called again */
export function coalesce(task: () => Promise<void>, onError: (error: unknown) => void): Coalesced {
  let asked = false;
  let stopped = false;
  let running: Promise<void> | undefined;
  const runWhileAsked = async () => {
    while (asked && !stopped) {
      asked = false;
      await task().catch(onError);
    }
    running = undefined;
  };
  return {
    call: () => {
      if (stopped) return;
      asked = true;
      running ??= forAll(runWhileAsked);
    },
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
