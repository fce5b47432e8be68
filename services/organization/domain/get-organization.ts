import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import type { OrganizationContext } from "../context.ts";
import type { Organization } from "./organization.ts";

/**
 * The caller's own organization.
 * @throws ServiceError (ORG_NOT_FOUND)
 */
export async function getOrganization(
  ctx: OrganizationContext,
  caller: Caller,
): Promise<Organization> {
  const organization = await ctx.store.findOrganization(caller.orgId);
  if (!organization) throw new ServiceError("ORG_NOT_FOUND", "org not found");
  return organization;
}
