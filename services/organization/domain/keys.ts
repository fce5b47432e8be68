import { describeApiKey, generateApiKey, hashApiKey } from "../../../runtime/api-key.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { invalidRequest, ServiceError } from "../../../runtime/errors.ts";
import type { OrganizationContext } from "../context.ts";
import { type ApiKey, endOf, type KeyMaterial, type NewKey } from "./key.ts";
import { noKey, noOrganization } from "./refusals.ts";

/**
 * A new key; its answer is the only one that ever holds it.
 * @throws ServiceError (INVALID_REQUEST where it would expire in the past, ORG_NOT_FOUND)
 */
export async function createKey(
  ctx: OrganizationContext,
  { orgId, actor }: Caller,
  { name, expiresAt }: { name: string; expiresAt: Date | null },
): Promise<NewKey> {
  if (expiresAt && expiresAt.getTime() <= Date.now())
    throw invalidRequest([{ field: "expires_at", message: "must be in the future" }]);
  const { secret, material } = make();
  const key = await ctx.store.createKey({ orgId, actor, name, expiresAt, material });
  if (!key) throw noOrganization();
  return { key, secret };
}

/**
 * One that is revoked already is left as it is.
 * @throws ServiceError (KEY_NOT_FOUND)
 */
export async function revokeKey(
  ctx: OrganizationContext,
  { orgId, actor }: Caller,
  id: string,
): Promise<ApiKey> {
  const key =
    (await ctx.store.revokeKey({ orgId, actor, id })) ?? (await ctx.store.findKey(orgId, id));
  if (!key) throw noKey();
  return key;
}

/**
 * A new key of the same name and expiry in place of a good one, which stays good for the overlap, if it does not
 * expire before.
 * @throws ServiceError (KEY_NOT_FOUND, INVALID_STATE_TRANSITION)
 */
export async function rotateKey(
  ctx: OrganizationContext,
  { orgId, actor }: Caller,
  { id, overlapSecs }: { id: string; overlapSecs: number },
): Promise<NewKey & { replaced: ApiKey }> {
  const { secret, material } = make();
  const rotated = await ctx.store.rotateKey({ orgId, actor, id, overlapSecs, material });
  if (rotated) return { ...rotated, secret };
  throw await whyNotRotated(ctx, orgId, id);
}

async function whyNotRotated(ctx: OrganizationContext, orgId: string, id: string) {
  const key = await ctx.store.findKey(orgId, id);
  if (!key) return noKey();
  // An end is for ever, so what refused the statement is there to be read still.
  const from = endOf(key) ?? "active";
  return new ServiceError(
    "INVALID_STATE_TRANSITION",
    `invalid state transition: the key is ${from}`,
    {
      metadata: { from, action: "rotate" },
    },
  );
}

function make(): { secret: string; material: KeyMaterial } {
  const secret = generateApiKey();
  return { secret, material: { sha256: hashApiKey(secret), ...describeApiKey(secret) } };
}
