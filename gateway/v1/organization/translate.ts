import {
  type Member,
  MemberRole,
  type Organization,
} from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { nameOf, toTime } from "../values.ts";
import type { Member as PublicMember, Organization as PublicOrganization } from "./schema.ts";

const roles = {
  owner: MemberRole.OWNER,
  admin: MemberRole.ADMIN,
  member: MemberRole.MEMBER,
  viewer: MemberRole.VIEWER,
} as const;

/** @throws Error on a message without what every organization has */
export function publicOrganization(organization: Organization | undefined): PublicOrganization {
  if (!organization) throw new Error("the answer holds no organization");
  return {
    id: organization.id,
    name: organization.name,
    slug: organization.slug,
    role: "owner",
    mfa_required: organization.mfaRequired,
    created_at: toTime(organization.createdAt),
    updated_at: toTime(organization.updatedAt),
  };
}

/** @throws Error on a message without what every member has */
export function publicMember(member: Member): PublicMember {
  return {
    id: member.id,
    user_id: member.userId,
    email: member.email,
    display_name: member.displayName ?? null,
    avatar_url: member.avatarUrl ?? null,
    role: nameOf(roles, member.role),
    joined_at: toTime(member.joinedAt),
  };
}
