import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "../../../../runtime/caller.ts";
import { type Reason, ServiceError } from "../../../../runtime/errors.ts";
import type { FilesContext } from "./context.ts";

/** What is about to be done under an idempotency key. */
export interface Intent {
  orgId: string;
  key: string;
  /** Keyed hash of the request, 32 bytes. */
  requestHash: Uint8Array;
  verb: string;
  volumeId: string;
  /** UUID of the try. */
  holder: string;
}

/** What came of it. */
export type Outcome =
  | { done: true }
  | { refusal: { reason: Reason; message: string; metadata: Record<string, string> } };

/** What is on record of a key; see organization.intend. */
export type Intended =
  | { state: "taken" | "again" | "busy" | "reused" }
  | { state: "known"; outcome: Outcome };

/** Whether an earlier request with the same key did it. */
export type Replayed = { replayed: boolean };

interface Deed {
  verb: string;
  volumeId: string;
  act(): Promise<void>;
  /** The same where an earlier try may have got to any point of it. */
  again(): Promise<void>;
}

type Context = Pick<FilesContext, "store" | "hashRequest" | "complain">;

/** How long a try that nobody hears of any more is waited for, and how often it says that it lives. */
const LEASE_SECS = 15;
const RENEW_MS = 5_000;
const LOOK_MS = 200;

// What the organization's own doing stands in the way of.
const REMEMBERED: ReadonlySet<Reason> = new Set<Reason>([
  "VOLUME_NOT_FOUND",
  "VOLUME_FILE_NOT_FOUND",
  "FILE_CONFLICT",
  "QUOTA_EXCEEDED",
]);
// Refused before anything was done.
const IDLE: ReadonlySet<Reason> = new Set<Reason>([
  "INVALID_VOLUME_PATH",
  "INVALID_SANDBOX_CONFIG",
]);

/**
 * Does what no statement can do once for each idempotency key, also when the process dies in the middle: its intent is
 * on record before it. Whoever comes while it is under way waits for it.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED for another request; a refusal on record again, with `replayed`
 */
export async function once(
  ctx: Context,
  { orgId, idempotency }: Caller,
  deed: Deed,
  signal: AbortSignal,
): Promise<Replayed> {
  if (!idempotency) {
    await deed.act();
    return { replayed: false };
  }
  const { verb, volumeId } = deed;
  const requestHash = ctx.hashRequest(idempotency.requestSha256);
  const intent = { orgId, key: idempotency.key, requestHash, verb, volumeId };
  for (;;) {
    const held = { ...intent, holder: randomUUID() };
    const found = await ctx.store.intend(held, LEASE_SECS);
    if (found.state === "reused") throw reused();
    if (found.state === "known") return replay(found.outcome);
    if (found.state === "busy") await sleep(LOOK_MS, undefined, { signal });
    // Not settled: it was held up for so long that somebody else has done it.
    else if (await carryOut(ctx, held, found.state === "taken" ? deed.act : deed.again))
      return { replayed: false };
  }
}

/** @returns whether its outcome is on record; throws what it is refused with, where that is */
async function carryOut(ctx: Context, intent: Intent, act: () => Promise<void>): Promise<boolean> {
  const renewal = setInterval(() => {
    ctx.store.holdIntent(intent, LEASE_SECS).catch(ctx.complain);
  }, RENEW_MS);
  try {
    await act();
  } catch (error) {
    if (!(await giveUp(ctx, intent, error))) return false;
    throw error;
  } finally {
    clearInterval(renewal);
  }
  return ctx.store.settleIntent(intent, { done: true });
}

/** @returns whether the intent was still held */
async function giveUp(
  { store, complain }: Context,
  intent: Intent,
  error: unknown,
): Promise<boolean> {
  const reason = error instanceof ServiceError ? error.reason : undefined;
  if (error instanceof ServiceError && REMEMBERED.has(error.reason)) {
    const { message, metadata } = error;
    const refusal = { reason: error.reason, message, metadata: { ...metadata } };
    return store.settleIntent(intent, { refusal });
  }
  const idle = reason !== undefined && IDLE.has(reason);
  // Whatever fails now too, the first failure is what the client is told; the intent runs out by itself.
  const released = idle ? store.withdrawIntent(intent) : store.holdIntent(intent, 0);
  await released.catch(complain);
  return true;
}

function replay(outcome: Outcome): Replayed {
  if (!("refusal" in outcome)) return { replayed: true };
  const { reason, message, metadata } = outcome.refusal;
  throw new ServiceError(reason, message, { metadata: { ...metadata, replayed: "true" } });
}

function reused(): ServiceError {
  return new ServiceError(
    "IDEMPOTENCY_KEY_REUSED",
    "the idempotency key was used for another request",
  );
}
