import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type * as pb from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { MemberRole } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { formatExact } from "../../runtime/exact-time.ts";

/** RFC 3339 in UTC, exact; null where there is none. */
export function moment(timestamp: Timestamp | undefined): string | null {
  return timestamp ? formatExact(timestamp) : null;
}

export const ROLES = {
  owner: MemberRole.OWNER,
  admin: MemberRole.ADMIN,
  member: MemberRole.MEMBER,
  viewer: MemberRole.VIEWER,
} as const;

export function organization(message: pb.Organization) {
  return {
    id: message.id,
    name: message.name,
    slug: message.slug,
    mfa_required: message.mfaRequired,
    suspended_at: moment(message.suspendedAt),
    created_at: moment(message.createdAt),
    updated_at: moment(message.updatedAt),
  };
}

export function member(message: pb.Member) {
  return {
    id: message.id,
    user_id: message.userId,
    email: message.email,
    display_name: message.displayName ?? null,
    avatar_url: message.avatarUrl ?? null,
    role: roleOf(message.role),
    joined_at: moment(message.joinedAt),
  };
}

function roleOf(role: MemberRole): string | null {
  return Object.entries(ROLES).find(([, value]) => value === role)?.[0] ?? null;
}

export function key(message: pb.ApiKey) {
  return {
    id: message.id,
    name: message.name,
    prefix: message.prefix,
    last_four: message.lastFour,
    status: statusOf(message),
    created_at: moment(message.createdAt),
    last_used_at: moment(message.lastUsedAt),
    expires_at: moment(message.expiresAt),
    revoked_at: moment(message.revokedAt),
    replaced_by: message.replacedBy ?? null,
  };
}

/** `rotated`: good until it expires, and another one takes its place. */
function statusOf({ revokedAt, expiresAt, replacedBy }: pb.ApiKey) {
  if (revokedAt) return "revoked";
  if (expiresAt && timestampDate(expiresAt) <= new Date()) return "expired";
  return replacedBy === undefined ? "good" : "rotated";
}

export function event(message: pb.Event) {
  return {
    id: message.id,
    org_id: message.orgId,
    category: message.category,
    event_type: message.eventType,
    actor: message.actor ?? {},
    payload: message.payload ?? {},
    timestamp: moment(message.timestamp),
  };
}
