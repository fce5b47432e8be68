import type { Caller } from "../../../runtime/caller.ts";
import { type Reason, ServiceError } from "../../../runtime/errors.ts";
import type { SandboxContext } from "../context.ts";
import { isOnRecord } from "../store.ts";
import type { Sandbox } from "./sandbox.ts";

/** What a verb's statement writes down beside its effect. */
export interface Memory {
  key: string;
  /** Keyed hash of the request, 32 bytes. */
  requestHash: Uint8Array;
}

/** What an earlier request with the same key did or was refused. */
export interface Remembered {
  requestHash: Uint8Array;
  outcome:
    | { sandbox: Sandbox }
    | { refusal: { reason: Reason; message: string; metadata: Record<string, string> } };
  /** What its client was told, where that was kept. */
  answer: Uint8Array | null;
}

/** A sandbox as a verb left it; `replay` where an earlier request did it. */
export type Answered = Sandbox & { replay?: Pick<Remembered, "answer"> };

type Owner = Pick<Caller, "orgId" | "idempotency">;
type Act = (memory?: Memory) => Promise<Sandbox>;

// What the organization's own doing stands in the way of. Other refusals wrote nothing and may be gone at the next try.
const REMEMBERED: ReadonlySet<Reason> = new Set<Reason>([
  "SANDBOX_NOT_FOUND",
  "NAME_ALREADY_EXISTS",
  "INVALID_STATE_TRANSITION",
  "QUOTA_EXCEEDED",
]);

/**
 * Does what is asked for once for each idempotency key: later requests with it are answered from the record.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED for another request; a refusal on record again, with `replayed`
 */
export async function once(
  ctx: SandboxContext,
  owner: Owner,
  verb: string,
  act: Act,
): Promise<Answered> {
  const { orgId, idempotency } = owner;
  if (!idempotency) return act();
  const { key, requestSha256 } = idempotency;
  const memory = { key, requestHash: ctx.hashRequest(requestSha256) };
  const known = await replayed(ctx, orgId, memory);
  if (known) return known;
  try {
    return await act(memory);
  } catch (error) {
    await refuse(ctx, orgId, verb, memory, error);
  }
  // On record by now. One that expires at this very moment is none, and it is done anew.
  return (await replayed(ctx, orgId, memory)) ?? once(ctx, owner, verb, act);
}

/** Throws what refused the request, unless it is on record by now: its own twin may have stood in its way. */
async function refuse(
  ctx: SandboxContext,
  orgId: string,
  verb: string,
  memory: Memory,
  error: unknown,
): Promise<void> {
  if (isOnRecord(error)) return;
  if (!(error instanceof ServiceError) || error.reason === "SERVICE_UNAVAILABLE") throw error;
  const stands = REMEMBERED.has(error.reason)
    ? await ctx.store.rememberRefusal(orgId, verb, memory, error)
    : !(await ctx.store.findRemembered(orgId, memory.key));
  if (stands) throw error;
}

async function replayed(
  ctx: SandboxContext,
  orgId: string,
  { key, requestHash }: Memory,
): Promise<Answered | undefined> {
  const known = await ctx.store.findRemembered(orgId, key);
  if (!known) return undefined;
  if (!Buffer.from(known.requestHash).equals(requestHash))
    throw new ServiceError(
      "IDEMPOTENCY_KEY_REUSED",
      "the idempotency key was used for another request",
    );
  const { outcome, answer } = known;
  if ("sandbox" in outcome) return { ...outcome.sandbox, replay: { answer } };
  const { reason, message, metadata } = outcome.refusal;
  throw new ServiceError(reason, message, { metadata: { ...metadata, replayed: "true" } });
}
