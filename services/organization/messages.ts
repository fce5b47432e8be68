import { create } from "@bufbuild/protobuf";
import {
  type Timestamp,
  TimestampSchema,
  timestampDate,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import * as pb from "../../proto/gen/organization/v1/organization_service_pb.ts";
import type { PageRequest } from "../../runtime/pages.ts";
import { given } from "../../runtime/rpc/given.ts";
import type { AuditEvent } from "./domain/event.ts";
import type { EventFilter } from "./domain/events.ts";
import type { ApiKey, KeyHolder } from "./domain/key.ts";
import { type Member, ROLES, type Role } from "./domain/member.ts";
import type { Organization } from "./domain/organization.ts";
import type { KeyNews } from "./key-feed.ts";

function time<Name extends string>(name: Name, at: Date | null) {
  return given(name, at && timestampFromDate(at));
}

export function keyHolderToMessage(holder: KeyHolder): pb.AuthenticateKeyResponse {
  const { expiresAt, ...rest } = holder;
  return create(pb.AuthenticateKeyResponseSchema, { ...rest, ...time("expiresAt", expiresAt) });
}

export function organizationToMessage(organization: Organization): pb.Organization {
  const { id, name, slug, mfaRequired, suspendedAt, createdAt, updatedAt } = organization;
  return create(pb.OrganizationSchema, {
    id,
    name,
    slug,
    mfaRequired,
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
    ...time("suspendedAt", suspendedAt),
  });
}

export function memberToMessage(member: Member): pb.Member {
  const { id, userId, email, displayName, avatarUrl, role, joinedAt } = member;
  return create(pb.MemberSchema, {
    id,
    userId,
    email,
    ...given("displayName", displayName),
    ...given("avatarUrl", avatarUrl),
    role: ROLE_NUMBERS[role],
    joinedAt: timestampFromDate(joinedAt),
  });
}

const ROLE_NUMBERS: Readonly<Record<Role, pb.MemberRole>> = {
  owner: pb.MemberRole.OWNER,
  admin: pb.MemberRole.ADMIN,
  member: pb.MemberRole.MEMBER,
  viewer: pb.MemberRole.VIEWER,
};

/** Of a role that the contract has checked. */
export function roleFromMessage(given: pb.MemberRole): Role {
  const role = ROLES.find((known) => ROLE_NUMBERS[known] === given);
  if (!role) throw new Error(`no such role: ${given}`);
  return role;
}

export function apiKeyToMessage(key: ApiKey): pb.ApiKey {
  const { id, name, prefix, lastFour, createdAt, lastUsedAt, expiresAt } = key;
  return create(pb.ApiKeySchema, {
    id,
    name,
    prefix,
    lastFour,
    createdAt: timestampFromDate(createdAt),
    ...time("lastUsedAt", lastUsedAt),
    ...time("expiresAt", expiresAt),
    ...time("revokedAt", key.revokedAt),
    ...given("replacedBy", key.replacedBy),
  });
}

/** null where it is unset. */
export function dateFromMessage(at: Timestamp | undefined): Date | null {
  return at ? timestampDate(at) : null;
}

export function usesFromMessage({ uses }: pb.RecordKeyUseRequest) {
  // The contract asks for a time.
  return uses.flatMap(({ apiKeyId, usedAt }) =>
    usedAt ? [{ apiKeyId, usedAt: timestampDate(usedAt) }] : [],
  );
}

export function newsToMessage(news: KeyNews): pb.WatchKeysResponse {
  return create(pb.WatchKeysResponseSchema, {
    event:
      news.kind === "changed"
        ? { case: "changed", value: news.change }
        : { case: "current", value: { ageMs: news.ageMs } },
  });
}

export function eventToMessage({ timestampUs, ...event }: AuditEvent): pb.Event {
  return create(pb.EventSchema, { ...event, timestamp: timestampFromUs(timestampUs) });
}

export function pageFromMessage(message: { pageSize: number; pageToken: string }): PageRequest {
  return { limit: message.pageSize, cursor: message.pageToken };
}

/** Times of the log are exact to the microsecond, so finer bounds are rounded inwards. */
export function eventFilterFromMessage(message: pb.ListEventsRequest): EventFilter {
  const { eventType, since, until } = message;
  return {
    eventType: eventType === "" ? null : eventType,
    sinceUs: since ? usOf(since, Math.ceil) : null,
    untilUs: until ? usOf(until, Math.floor) : null,
  };
}

function usOf({ seconds, nanos }: Timestamp, round: (us: number) => number): bigint {
  return seconds * 1_000_000n + BigInt(round(nanos / 1_000));
}

function timestampFromUs(us: bigint): Timestamp {
  const rest = ((us % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = (us - rest) / 1_000_000n;
  return create(TimestampSchema, { seconds, nanos: Number(rest) * 1_000 });
}

/** A page's token, where there is a next one. */
export function nextToken(cursor: string | null) {
  return given("nextPageToken", cursor);
}
