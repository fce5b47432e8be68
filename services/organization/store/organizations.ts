import { type Database, refusal } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { Organization } from "../domain/organization.ts";

const COLUMNS = `id, name, slug, mfa_required AS "mfaRequired", suspended_at AS "suspendedAt",
  created_at AS "createdAt", updated_at AS "updatedAt"`;

export async function findOrganization(
  database: Database,
  id: string,
): Promise<Organization | undefined> {
  const [organization] = await database.query<Organization>(
    `SELECT ${COLUMNS} FROM organization.organizations WHERE id = $1::uuid`,
    id,
  );
  return organization;
}

/** Oldest first. */
export function listOrganizations(database: Database): Promise<Organization[]> {
  return database.query<Organization>(
    `SELECT ${COLUMNS} FROM organization.organizations ORDER BY organizations.created_at, organizations.id`,
  );
}

/** @returns undefined where the slug is taken */
export async function createOrganization(
  database: Database,
  { name, slug, actor }: { name: string; slug: string; actor: Actor },
): Promise<Organization | undefined> {
  try {
    const [made] = await database.query<Organization>(
      `WITH made AS (
         INSERT INTO organization.organizations (id, name, slug)
         VALUES (organization.uuid7(now()), $1, $2) RETURNING *
       )
       SELECT ${COLUMNS}, sandbox.add_host_volume(made.id, made.created_at) AS volume,
              ${event("org_created", "made", "$3", "made.created_at")} AS event FROM made`,
      name,
      slug,
      JSON.stringify(actor),
    );
    return made;
  } catch (error) {
    if (refusal(error)?.constraint === "organizations_slug_key") return undefined;
    throw error;
  }
}

/** @returns undefined where there is none, or it is suspended already */
export const suspendOrganization = change(
  "org_suspended",
  "suspended_at = clock_timestamp()",
  "suspended_at IS NULL",
);

/** @returns undefined where there is none, or it is not suspended */
export const resumeOrganization = change(
  "org_resumed",
  "suspended_at = NULL",
  "suspended_at IS NOT NULL",
);

// One that waited for another change judges what that one left, by PostgreSQL's own rule.
function change(type: string, assignment: string, condition: string) {
  return async (
    database: Database,
    id: string,
    actor: Actor,
  ): Promise<Organization | undefined> => {
    const [moved] = await database.query<Organization>(
      `WITH moved AS (
         UPDATE organization.organizations SET ${assignment}, updated_at = clock_timestamp()
         WHERE id = $1::uuid AND ${condition} RETURNING *
       )
       SELECT ${COLUMNS}, ${event(type, "moved", "$2", "moved.updated_at")} AS event FROM moved`,
      id,
      JSON.stringify(actor),
    );
    return moved;
  };
}

function event(type: string, of: string, actor: string, at: string): string {
  return `organization.append_event(${of}.id, '${type}', ${actor}::jsonb,
    jsonb_build_object('name', ${of}.name, 'slug', ${of}.slug), ${at})`;
}
