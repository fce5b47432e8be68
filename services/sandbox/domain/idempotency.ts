import type { Caller } from "../../../runtime/caller.ts";
import { type Reason, ServiceError } from "../../../runtime/errors.ts";
import type { SandboxContext } from "../context.ts";
import { isOnRecord } from "../store.ts";
import type { Sandbox } from "./sandbox.ts";
import type { Volume } from "./volume.ts";

/** What verbs answer with, by the word that records have for it. */
export interface Resources {
  sandbox: Sandbox;
  volume: Volume;
}

/** Such as sandbox and start. */
export interface Verb<Kind extends keyof Resources = keyof Resources> {
  kind: Kind;
  verb: string;
}

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
    | { done: Partial<Resources> }
    | { refusal: { reason: Reason; message: string; metadata: Record<string, string> } };
  /** What its client was told, where that was kept. */
  answer: Uint8Array | null;
}

/** A resource as a verb left it; `replay` where an earlier request did it. */
export type Answered<Resource = Sandbox> = Resource & { replay?: Pick<Remembered, "answer"> };

type Owner = Pick<Caller, "orgId" | "idempotency">;

// What the organization's own doing stands in the way of. Other refusals wrote nothing and may be gone at the next try.
const REMEMBERED: ReadonlySet<Reason> = new Set<Reason>([
  "SANDBOX_NOT_FOUND",
  "NAME_ALREADY_EXISTS",
  "INVALID_STATE_TRANSITION",
  "QUOTA_EXCEEDED",
  "VOLUME_NOT_FOUND",
  "VOLUME_ALREADY_EXISTS",
  "VOLUME_PROTECTED",
  "VOLUME_IN_USE",
]);

/**
 * Does what is asked for once for each idempotency key: later requests with it are answered from the record.
 * @throws ServiceError IDEMPOTENCY_KEY_REUSED for another request; a refusal on record again, with `replayed`
 */
export async function once<Kind extends keyof Resources>(
  ctx: SandboxContext,
  owner: Owner,
  verb: Verb<Kind>,
  act: (memory?: Memory) => Promise<Resources[Kind]>,
): Promise<Answered<Resources[Kind]>> {
  const { orgId, idempotency } = owner;
  if (!idempotency) return act();
  const { key, requestSha256 } = idempotency;
  const memory = { key, requestHash: ctx.hashRequest(requestSha256) };
  const known = await replayed(ctx, orgId, verb.kind, memory);
  if (known) return known;
  try {
    return await act(memory);
  } catch (error) {
    await refuse(ctx, orgId, verb, memory, error);
  }
  // On record by now. One that expires at this very moment is none, and it is done anew.
  return (await replayed(ctx, orgId, verb.kind, memory)) ?? once(ctx, owner, verb, act);
}

/** Throws what refused the request, unless it is on record by now: its own twin may have stood in its way. */
async function refuse(
  ctx: SandboxContext,
  orgId: string,
  verb: Verb,
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

async function replayed<Kind extends keyof Resources>(
  ctx: SandboxContext,
  orgId: string,
  kind: Kind,
  { key, requestHash }: Memory,
): Promise<Answered<Resources[Kind]> | undefined> {
  const known = await ctx.store.findRemembered(orgId, key);
  if (!known) return undefined;
  const { outcome, answer } = known;
  const same = Buffer.from(known.requestHash).equals(requestHash);
  if (same && "refusal" in outcome) {
    const { reason, message, metadata } = outcome.refusal;
    throw new ServiceError(reason, message, { metadata: { ...metadata, replayed: "true" } });
  }
  const done: Resources[Kind] | undefined = "done" in outcome ? outcome.done[kind] : undefined;
  if (same && done) return { ...done, replay: { answer } };
  throw new ServiceError(
    "IDEMPOTENCY_KEY_REUSED",
    "the idempotency key was used for another request",
  );
}
