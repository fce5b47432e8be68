import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";

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

export async function hasOrganizations(database: Database): Promise<boolean> {
  return (await database.prisma.organization.findFirst()) !== null;
}

/** @returns false where there is an organization already */
export async function createFirstOrganization(
  database: Database,
  first: FirstOrganization,
): Promise<boolean> {
  // Of two processes that start on an empty database, the slower one waits at the slug's uniqueness and then adds nothing.
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
     SELECT sandbox.add_host_volume(key.org_id, now()) AS volume,
            organization.append_event(key.org_id, 'api_key_created', $7::jsonb,
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
