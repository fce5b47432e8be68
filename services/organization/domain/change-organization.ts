import type { Actor, Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import type { OrganizationContext } from "../context.ts";
import { getOrganization } from "./get-organization.ts";
import type { Organization } from "./organization.ts";

/** @throws ServiceError (NAME_ALREADY_EXISTS) where the slug is taken */
export async function createOrganization(
  ctx: OrganizationContext,
  actor: Actor,
  { name, slug }: { name: string; slug: string },
): Promise<Organization> {
  const made = await ctx.store.createOrganization({ name, slug, actor });
  if (made) return made;
  throw new ServiceError("NAME_ALREADY_EXISTS", "'slug' already exists", {
    metadata: { field: "slug" },
  });
}

/**
 * Its keys stop working; one that is suspended already is left as it is.
 * @throws ServiceError (ORG_NOT_FOUND)
 */
export async function suspendOrganization(
  ctx: OrganizationContext,
  caller: Caller,
): Promise<Organization> {
  const moved = await ctx.store.suspendOrganization(caller.orgId, caller.actor);
  return moved ?? getOrganization(ctx, caller);
}

/**
 * Its keys work again; one that is not suspended is left as it is.
 * @throws ServiceError (ORG_NOT_FOUND)
 */
export async function resumeOrganization(
  ctx: OrganizationContext,
  caller: Caller,
): Promise<Organization> {
  const moved = await ctx.store.resumeOrganization(caller.orgId, caller.actor);
  return moved ?? getOrganization(ctx, caller);
}
