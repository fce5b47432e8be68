import { type Database, refusal } from "../../../prisma/database.ts";
import { Conditions, type Placed, slice, toUs } from "../../../prisma/pages.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { PagePoint, Slice } from "../../../runtime/pages.ts";
import type { Member, Role } from "../domain/member.ts";

const COLUMNS = `m.id, m.user_id AS "userId", u.email, u.display_name AS "displayName",
  u.avatar_url AS "avatarUrl", m.role, m.joined_at AS "joinedAt"`;

// The snapshot says who it was after the membership, or the person, is gone.
const SNAPSHOT = `jsonb_build_object('member_id', m.id, 'user_id', m.user_id, 'role', m.role,
  'email', organization.redact_email(u.email))`;

/** Newest first. */
export async function listMembers(
  database: Database,
  { orgId, limit, after }: { orgId: string; limit: number; after: PagePoint | null },
): Promise<Slice<Member>> {
  const where = new Conditions();
  where.add(`m.org_id = ${where.place(orgId)}::uuid`);
  const most = where.place(limit + 1);
  where.behind(after, "m.joined_at", "m.id");
  const rows = await database.query<Member & Placed>(
    `SELECT ${COLUMNS}, ${toUs("m.joined_at")} AS us
     FROM organization.members m JOIN organization.users u ON u.id = m.user_id
     WHERE ${where.sql} ORDER BY m.joined_at DESC, m.id DESC LIMIT ${most}::int`,
    ...where.values,
  );
  return slice(rows, limit);
}

export interface NewMember {
  orgId: string;
  actor: Actor;
  email: string;
  displayName: string | null;
  role: Role;
}

/** @returns undefined where there is no such organization */
export async function addMember(
  database: Database,
  { orgId, actor, email, displayName, role }: NewMember,
): Promise<Member | "member already" | undefined> {
  try {
    const [added] = await database.query<Member>(
      ADD,
      orgId,
      JSON.stringify(actor),
      email,
      displayName,
      role,
    );
    return added;
  } catch (error) {
    if (refusal(error)?.constraint === "members_user_key") return "member already";
    throw error;
  }
}

// Who is known keeps the name that they have. The update that changes nothing finds a person who is being made just
// now, and keeps them until this is done.
const ADD = `
WITH u AS (
  INSERT INTO organization.users AS known (id, email, display_name)
  SELECT organization.uuid7(now()), $3, $4::text FROM organization.organizations WHERE id = $1::uuid
  ON CONFLICT (lower(email)) DO UPDATE SET display_name = coalesce(known.display_name, excluded.display_name)
  RETURNING *
),
m AS (
  INSERT INTO organization.members (id, org_id, user_id, role, joined_at)
  SELECT organization.uuid7(at.now), $1::uuid, u.id, $5, at.now
  FROM u, LATERAL (SELECT greatest(clock_timestamp(), u.created_at) AS now) at
  RETURNING *
)
SELECT ${COLUMNS}, organization.append_event(m.org_id, 'member_added', $2::jsonb, ${SNAPSHOT}, m.joined_at) AS event
FROM m, u`;

/** @returns false where there is no such member */
export async function removeMember(
  database: Database,
  { orgId, actor, memberId }: { orgId: string; actor: Actor; memberId: string },
): Promise<boolean> {
  const rows = await database.query(
    `WITH m AS (
       DELETE FROM organization.members WHERE org_id = $1::uuid AND id = $2::uuid RETURNING *
     )
     SELECT organization.append_event(m.org_id, 'member_removed', $3::jsonb, ${SNAPSHOT}, clock_timestamp()) AS event
     FROM m JOIN organization.users u ON u.id = m.user_id`,
    orgId,
    memberId,
    JSON.stringify(actor),
  );
  return rows.length > 0;
}
