import type { Database } from "./database.ts";

/** A table of four pages has some dozens of rows: enough to tell what is rare from what is everywhere. */
const ENOUGH_BYTES = 32_768;

const NEVER_ANALYZED = `
SELECT c.oid::regclass::text AS name FROM pg_class c
WHERE c.relnamespace = to_regnamespace($1) AND c.relkind = 'r' AND c.reltuples < 0
  AND pg_relation_size(c.oid) >= $2::int AND pg_has_role(c.relowner, 'USAGE')`;

/**
 * Gives tables of a schema their first statistics; later ones are autovacuum's. Until it comes by, a minute or more, a
 * new database knows nothing of a table that fills up, and PostgreSQL may seek a sandbox by its name among all of its
 * organization: each in turn, under the organization's lock.
 * @returns how many tables that were
 */
export async function analyzeNewTables(database: Database, schema: string): Promise<number> {
  const tables = await database.query<{ name: string }>(NEVER_ANALYZED, schema, ENOUGH_BYTES);
  for (const { name } of tables) await database.query(`ANALYZE ${name}`);
  return tables.length;
}
