import { setTimeout as sleep } from "node:timers/promises";
import { forAll } from "../../runtime/current-call.ts";

/** A task that many ask for and that runs once at a time. */
export interface Coalesced {
  /** Runs the task; calls while it runs become one more run. */
  call(): void;
  /** Begins no further run, and waits for the one under way. */
  stop(): Promise<void>;
}

/**
 * @param onError gets what the task throws; it runs again when it is called again
 * @param restMs behind each run: what is asked for meanwhile is one run, and waits for no longer than that
 */
export function coalesce(
  task: () => Promise<void>,
  onError: (error: unknown) => void,
  restMs = 0,
): Coalesced {
  let asked = false;
  let running: Promise<void> | undefined;
  const stopping = new AbortController();
  const { signal } = stopping;
  const rest = () => sleep(restMs, undefined, { signal }).catch(() => {});
  const runWhileAsked = async () => {
    while (asked && !signal.aborted) {
      asked = false;
      await task().catch(onError);
      if (restMs > 0) await rest();
    }
    running = undefined;
  };
  return {
    call: () => {
      if (signal.aborted) return;
      asked = true;
      running ??= forAll(runWhileAsked);
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
