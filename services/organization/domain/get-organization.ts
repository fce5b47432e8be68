import type { Caller } from "../../../runtime/caller.ts";
import type { OrganizationContext } from "../context.ts";
import type { Organization } from "./organization.ts";
import { noOrganization } from "./refusals.ts";

/**
 * The caller's own organization.
 * @throws ServiceError (ORG_NOT_FOUND)
 */
export async function getOrganization(
  ctx: OrganizationContext,
  caller: Pick<Caller, "orgId">,
): Promise<Organization> {
  const organization = await ctx.store.findOrganization(caller.orgId);
  if (!organization) throw noOrganization();
  return organization;
}
