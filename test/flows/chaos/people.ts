import { generateApiKey, hashApiKey } from "../../../runtime/api-key.ts";
import { withClient } from "../../../runtime/postgres/connect.ts";

/** One client and its key; it is in its audit events by its name. */
export interface Person {
  name: string;
  key: string;
}

const PER_ORGANIZATION = 3;

/** One organization may store so much that nothing is refused, and all is reserved. */
const STORAGE = `
INSERT INTO billing.overrides (org_id, limits, updated_at)
SELECT id, '{"max_total_storage_gib": 20}', now() FROM organization.organizations WHERE slug = 'chaos-2'`;

/** One organization has limits, and a row that is beyond them is refused: the client that would make it is told `internal`. */
const LIMIT = `
DO $$ BEGIN
  INSERT INTO billing.overrides (org_id, limits, updated_at)
  SELECT id, '{"max_sandboxes": 7, "max_concurrent_persistent_running": 3, "max_concurrent_ephemeral_running": 1}', now()
  FROM organization.organizations WHERE slug = 'chaos-1';
  EXECUTE format(
    'ALTER TABLE sandbox.places ADD CHECK (org_id <> %L OR total_sandboxes <= 7 AND persistent_running <= 3 AND ephemeral_running <= 1)',
    (SELECT id FROM organization.organizations WHERE slug = 'chaos-1'));
END $$`;

/** Makes organizations with some clients each, every client with a key of its own; keepers are those who have volumes. */
export async function createPeople(
  databaseUrl: string,
  count: { clients: number; keepers: number },
): Promise<{ clients: Person[]; keepers: Person[] }> {
  const person = (kind: string, perOrganization: number) => (_: unknown, i: number) => ({
    name: `${kind}-${i + 1}`,
    key: generateApiKey(),
    organization: `chaos-${Math.floor(i / perOrganization) + 1}`,
  });
  const clients = Array.from({ length: count.clients }, person("client", PER_ORGANIZATION));
  const keepers = Array.from({ length: count.keepers }, person("keeper", 1));
  await withClient(databaseUrl, async (client) => {
    for (const { name, key, organization } of [...clients, ...keepers])
      await client.query(
        `WITH org AS (
           INSERT INTO organization.organizations (id, name, slug) VALUES (gen_random_uuid(), $1, $1)
           ON CONFLICT (slug) DO UPDATE SET name = excluded.name RETURNING id
         )
         INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four)
         SELECT gen_random_uuid(), id, $2, $3, 'sgt_live_', right($4, 4) FROM org`,
        [organization, name, hashApiKey(key), key],
      );
    await client.query(LIMIT);
    await client.query(STORAGE);
    await client.query(
      "SELECT sandbox.add_host_volume(id, clock_timestamp()) FROM organization.organizations",
    );
  });
  return { clients, keepers };
}
