import { inTime } from "../in-time.ts";

const FRESH_MS = 10_000;
/** Of all the time, what asking may take. */
const SHARE = 0.01;
const PATIENCE_MS = 1_000;

/**
 * For what a look costs, such as a count of rows: it is asked for at most every ten seconds, and, where it takes long,
 * for no more than a hundredth of the time. Who looks waits for a second at most.
 * @returns gives undefined where there is no answer
 */
export function seldomAsked<T>(ask: () => Promise<T>): () => Promise<T | undefined> {
  let answer: Promise<T | undefined> | undefined;
  let staleAt = 0;
  const again = async () => {
    const began = performance.now();
    staleAt = Number.POSITIVE_INFINITY;
    const asked = await ask().catch(() => undefined);
    const now = performance.now();
    staleAt = now + Math.max(FRESH_MS, (now - began) / SHARE);
    return asked;
  };
  return () => {
    if (!answer || performance.now() > staleAt) answer = again();
    return inTime(answer, PATIENCE_MS).catch(() => undefined);
  };
}
