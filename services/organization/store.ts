import type { Database } from "../../prisma/database.ts";
import type { Actor } from "../../runtime/caller.ts";
import type { KeyHolder, Organization } from "./domain/organization.ts";

export type { Database };

/** Every query of the organization service. */
export type Store = ReturnType<typeof createStore>;

/** The first organization of an installation and its key. */
export interface FirstOrganization {
  name: string;
  slug: string;
  keyName: string;
  keySha256: Uint8Array;
  keyPrefix: string;
  keyLastFour: string;
  actor: Actor;
}

export function createStore(database: Database) {
  return {
    /** Of a key that is neither revoked nor expired. */
    findKeyHolder: (sha256: Uint8Array) => findKeyHolder(database, sha256),
    findOrganization: (id: string) => findOrganization(database, id),
    hasOrganizations: async () => (await database.prisma.organization.findFirst()) !== null,
    /** @returns false where there is an organization already */
    createFirstOrganization: (first: FirstOrganization) => createFirstOrganization(database, first),
  };
}

async function findKeyHolder(
  database: Database,
  sha256: Uint8Array,
): Promise<KeyHolder | undefined> {
  const [holder] = await database.query<KeyHolder>(
    `SELECT k.org_id AS "orgId", k.id AS "apiKeyId", k.name AS "apiKeyName",
            o.suspended_at IS NOT NULL AS "orgSuspended", k.expires_at AS "expiresAt"
     FROM organization.api_keys k JOIN organization.organizations o ON o.id = k.org_id
     WHERE k.key_sha256 = $1 AND k.revoked_at IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > now())`,
    sha256,
  );
  return holder;
}

async function findOrganization(database: Database, id: string): Promise<Organization | undefined> {
  const organization = await database.prisma.organization.findUnique({ where: { id } });
  return organization ?? undefined;
}

// One statement: of two processes that start on an empty database, the slower one waits at the
// slug's uniqueness and then adds nothing.
async function createFirstOrganization(
  database: Database,
  first: FirstOrganization,
): Promise<boolean> {
  const rows = await database.query<{ event: string }>(
    `WITH org AS (
       INSERT INTO organization.organizations (id, name, slug)
       SELECT organization.uuid7(now()), $1, $2
       WHERE NOT EXISTS (SELECT FROM organization.organizations)
       ON CONFLICT (slug) DO NOTHING
       RETURNING id
     ), key AS (
       INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four)
       SELECT organization.uuid7(now()), org.id, $3, $4, $5, $6 FROM org
       RETURNING id, org_id, name, prefix, last_four
     )
     SELECT organization.append_event(key.org_id, 'api_key_created', $7::jsonb,
              jsonb_build_object('api_key_id', key.id, 'name', key.name,
                                 'prefix', key.prefix, 'last_four', key.last_four),
              now()) AS event
     FROM key`,
    first.name,
    first.slug,
    first.keyName,
    first.keySha256,
    first.keyPrefix,
    first.keyLastFour,
    JSON.stringify(first.actor),
  );
  return rows.length > 0;
}
