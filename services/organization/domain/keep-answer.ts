import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import type { OrganizationContext } from "../context.ts";

/**
 * Keeps what a request with an idempotency key was answered; the first answer stays.
 * @returns what is on record now
 * @throws ServiceError (IDEMPOTENCY_KEY_UNKNOWN) where no effect is, or it has expired
 */
export async function keepAnswer(
  ctx: OrganizationContext,
  { orgId }: Caller,
  { key, answer }: { key: string; answer: Uint8Array },
): Promise<Uint8Array> {
  const kept = await ctx.store.keepAnswer(orgId, key, answer);
  if (kept) return kept;
  throw new ServiceError("IDEMPOTENCY_KEY_UNKNOWN", "nothing is on record under this key");
}
