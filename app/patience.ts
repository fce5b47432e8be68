import { setTimeout as sleep } from "node:timers/promises";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { seldom } from "../runtime/seldom.ts";

const AGAIN_MS = 500;

export interface Patience {
  log: Pick<Logger, "warn">;
  lifecycle: Pick<Lifecycle, "stopping">;
}

/**
 * Tries until it succeeds, and says now and then why it does not.
 * @param what is waited for, for the log
 * @param mayPass whether an error is worth another try; any other is thrown, and so is the last one of a program that stops
 */
export async function untilThere<T>(
  what: string,
  attempt: () => Promise<T>,
  mayPass: (error: unknown) => boolean,
  { log, lifecycle }: Patience,
): Promise<T> {
  const complain = seldom((error, unsaid) =>
    log.warn({ reason: String(error), ...unsaid }, `waiting for ${what}`),
  );
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (lifecycle.stopping || !mayPass(error)) throw error;
      complain(error);
    }
    await sleep(AGAIN_MS);
  }
}
