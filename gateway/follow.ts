import { setTimeout as sleep } from "node:timers/promises";
import type { FastifyBaseLogger } from "fastify";
import { seldom } from "../runtime/seldom.ts";

const MAX_BACKOFF_MS = 1_000;

/** How a stream of a service is followed. */
export interface Following {
  signal: AbortSignal;
  log: FastifyBaseLogger;
  /** Pause before the first reconnection; it doubles from one to the next, up to a second. */
  backoffMs: number;
}

/**
 * Reads a stream until the signal; one that breaks off is opened again.
 * @param what it is a watch on, for the log
 * @param read opens it, and calls `seen` at each message, for it works again
 */
export async function follow(
  what: string,
  { signal, log, backoffMs }: Following,
  read: (seen: () => void) => Promise<void>,
): Promise<void> {
  const complain = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, `the watch on ${what} broke off`),
  );
  let pause = backoffMs;
  const seen = () => {
    pause = backoffMs;
  };
  while (!signal.aborted) {
    await read(seen).catch((error: unknown) => {
      if (!signal.aborted) complain(error);
    });
    await sleep(pause, undefined, { signal }).catch(() => undefined);
    pause = Math.min(pause * 2, MAX_BACKOFF_MS);
  }
}
