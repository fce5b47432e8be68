import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { type Page, type PageRequest, page } from "../../../runtime/pages.ts";
import type { OrganizationContext } from "../context.ts";
import type { Member, Role } from "./member.ts";
import { noOrganization } from "./refusals.ts";

/**
 * Newest first.
 * @throws ServiceError (INVALID_REQUEST) for a cursor of another list
 */
export function listMembers(
  ctx: OrganizationContext,
  { orgId }: Caller,
  request: PageRequest,
): Promise<Page<Member>> {
  return page(ctx.sign, { list: "members", orgId, filters: null }, request, (limit, after) =>
    ctx.store.listMembers({ orgId, limit, after }),
  );
}

/**
 * Makes a person a member; who is known by this address already stays who they are.
 * @throws ServiceError (ORG_NOT_FOUND, MEMBER_ALREADY_EXISTS)
 */
export async function addMember(
  ctx: OrganizationContext,
  { orgId, actor }: Caller,
  person: { email: string; displayName: string | null; role: Role },
): Promise<Member> {
  const added = await ctx.store.addMember({ orgId, actor, ...person });
  if (added === "member already")
    throw new ServiceError("MEMBER_ALREADY_EXISTS", "is a member already");
  if (!added) throw noOrganization();
  return added;
}

/** @throws ServiceError (MEMBER_NOT_FOUND) */
export async function removeMember(
  ctx: OrganizationContext,
  { orgId, actor }: Caller,
  memberId: string,
): Promise<void> {
  if (await ctx.store.removeMember({ orgId, actor, memberId })) return;
  throw new ServiceError("MEMBER_NOT_FOUND", "no such member");
}
