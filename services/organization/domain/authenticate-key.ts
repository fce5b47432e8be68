import { ServiceError } from "../../../runtime/errors.ts";
import type { OrganizationContext } from "../context.ts";
import type { KeyHolder } from "./key.ts";

/**
 * Whose key this is.
 * @param sha256 of the key
 * @throws ServiceError (INVALID_API_KEY) where it is unknown, revoked or expired
 */
export async function authenticateKey(
  ctx: OrganizationContext,
  sha256: Uint8Array,
): Promise<KeyHolder> {
  const holder = await ctx.store.findKeyHolder(sha256);
  if (!holder) throw new ServiceError("INVALID_API_KEY", "unauthorized");
  return holder;
}
