import { setTimeout as sleep } from "node:timers/promises";
import type { DescMethod } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { isUnprocessed } from "./unprocessed.ts";

interface Call {
  /** Whether it may be made again after this error. */
  mayRepeat: (error: unknown) => boolean;
  signal: AbortSignal | undefined;
  /** Rest until the deadline; undefined: none. */
  timeoutMs: number | undefined;
}

// Bridges the restart of a process; for longer, a caller had rather know.
const TRY_FOR_MS = 3_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;

/**
 * Makes a call, again where that may be done. The pauses grow, and all of it stays within the deadline.
 * @param attempt gets what is then left until the deadline, in milliseconds
 */
export async function retrying<T>(
  { mayRepeat, signal, timeoutMs }: Call,
  attempt: (timeoutMs: number | undefined) => Promise<T>,
): Promise<T> {
  const began = performance.now();
  const patience = Math.min(TRY_FOR_MS, timeoutMs ?? TRY_FOR_MS);
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      return await attempt(rest(timeoutMs, began));
    } catch (error) {
      // Spread out, so that all who lost one process do not come back to it at once.
      const wait = pause * (0.5 + Math.random());
      if (!mayRepeat(error) || performance.now() - began + wait >= patience) throw error;
      await sleep(wait, undefined, signal ? { signal } : {}).catch(() => undefined);
      if (signal?.aborted) throw error;
    }
  }
}

// In whole milliseconds, as it travels.
function rest(timeoutMs: number | undefined, began: number): number | undefined {
  if (timeoutMs === undefined) return undefined;
  return Math.max(1, Math.ceil(timeoutMs - (performance.now() - began)));
}

/** Of a call that found nobody (Unavailable), whether a repeat does no harm: its contract says so, or nobody has begun with it. */
export function isRepeatable({ idempotency }: DescMethod, error: unknown): boolean {
  if (!(error instanceof ConnectError && error.code === Code.Unavailable)) return false;
  const isHarmless = idempotency === Level.NO_SIDE_EFFECTS || idempotency === Level.IDEMPOTENT;
  return isHarmless || isUnprocessed(error);
}
