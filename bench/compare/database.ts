import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { withClient } from "../../runtime/postgres/connect.ts";

/** What is in the database, and who may ask for it. */
export interface Stock {
  apiKey: string;
  /** Of the right form, and nobody's. */
  wrongKey: string;
  serviceToken: string;
  wrongToken: string;
  orgId: string;
  ids: string[];
  names: string[];
  /** Of pages of 20 from the first sandboxes on. */
  cursors: string[];
}

// A second apart and to the millisecond: what Prisma reads of a time is all of it then.
const FILL = `
INSERT INTO sandbox.sandboxes (id, org_id, name, slug, status, spec, requires, ephemeral, created_at)
SELECT organization.uuid7(at), s.org_id, 'bench-' || n, 'bench-' || n, 'created', s.spec, s.requires, s.ephemeral, at
FROM sandbox.sandboxes s, generate_series(1, $2::int) n,
     LATERAL (SELECT date_trunc('milliseconds', s.created_at) - n * interval '1 second' AS at) made
WHERE s.id = $1`;
const COUNTED = `UPDATE sandbox.places p SET total_sandboxes = (
  SELECT count(*) FROM sandbox.sandboxes s WHERE s.org_id = p.org_id AND s.destroyed_at IS NULL)`;

/** Each of them is asked for in turn. */
const MOST_ASKED = 1_000;

/** Leaves so many sandboxes like one that the API has made, and no other. @returns ids and names of some */
export function fill(databaseUrl: string, likeId: string, count: number) {
  return withClient(databaseUrl, async (client) => {
    await client.query("DELETE FROM sandbox.sandboxes WHERE name LIKE 'bench-%'");
    await client.query(FILL, [likeId, count]);
    await clear(client);
    await client.query("ANALYZE sandbox.sandboxes");
    const { rows } = await client.query<{ id: string; name: string }>(
      "SELECT id, name FROM sandbox.sandboxes ORDER BY hashtext(name) LIMIT $1",
      [MOST_ASKED],
    );
    return { ids: rows.map(({ id }) => id), names: rows.map(({ name }) => name) };
  });
}

/** Takes away what was created since, rows and pages and what is still to be written of them: every turn begins alike. */
export function clean(databaseUrl: string): Promise<void> {
  return withClient(databaseUrl, clear);
}

async function clear(client: Client): Promise<void> {
  await client.query("DELETE FROM sandbox.sandboxes WHERE name NOT LIKE 'bench-%'");
  await client.query("DELETE FROM organization.events WHERE event_type = 'sandbox_created'");
  await client.query(COUNTED);
  for (const table of ["sandbox.sandboxes", "sandbox.places", "organization.events"])
    await client.query(`VACUUM ${table}`);
  await client.query("CHECKPOINT");
}

export function versionOf(databaseUrl: string): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ server_version: string }>("SHOW server_version");
    return rows[0]?.server_version ?? "";
  });
}

/** The process that all backends of a server are children of. */
export async function postmasterOf(folder: string): Promise<number> {
  return Number.parseInt(await readFile(join(folder, "data/postmaster.pid"), "utf8"), 10);
}
