import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { analyzeNewTables } from "../../prisma/first-statistics.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createTestDatabase } from "../support/database.ts";

let own: Awaited<ReturnType<typeof createTestDatabase>>;
let database: Database;
beforeEach(async () => {
  own = await createTestDatabase();
  database = openDatabase(own.url);
});
afterEach(async () => {
  await database.close();
  await own.close();
});

const fill = (sandboxes: number) =>
  database.query(
    `INSERT INTO sandbox.sandboxes (id, org_id, name, slug, status, spec, requires, ephemeral, created_at)
     SELECT gen_random_uuid(), '00000000-0000-7000-8000-000000000001', 'box-' || n, 'box-' || n, 'created', '{}', '{}', false, now()
     FROM generate_series(1, $1::int) n RETURNING id`,
    sandboxes,
  );
const DESTROY = `EXPLAIN (FORMAT TEXT) SELECT * FROM sandbox.sandboxes
  WHERE org_id = '00000000-0000-7000-8000-000000000001' AND name = 'box-7' AND destroyed_at IS NULL`;
const planOf = async () =>
  (await database.query<{ "QUERY PLAN": string }>(DESTROY)).map((row) => row["QUERY PLAN"]).join();

test("a table that fills up gets statistics once, and a name is sought by its name", async () => {
  await withClient(own.url, async (client) => {
    // Else autovacuum might be first.
    await client.query("ALTER TABLE sandbox.sandboxes SET (autovacuum_enabled = false)");
  });
  await fill(5);
  expect(await analyzeNewTables(database, "sandbox")).toBe(0);
  await database.query("DELETE FROM sandbox.sandboxes RETURNING id");
  await fill(2_000);
  expect(await analyzeNewTables(database, "sandbox")).toBe(1);
  expect(await analyzeNewTables(database, "sandbox")).toBe(0);
  expect(await planOf()).toContain("sandboxes_name_key");
});

test("tables of others, and of other schemas, are left alone", async () => {
  await fill(2_000);
  expect(await analyzeNewTables(database, "organization")).toBe(0);
  await withClient(own.url, async (client) => {
    const role = `role_${process.pid}`;
    await client.query(`CREATE ROLE ${role} LOGIN`);
    await client.query(`GRANT USAGE ON SCHEMA sandbox TO ${role}`);
    const url = new URL(own.url);
    url.username = role;
    const other = openDatabase(String(url));
    expect(await analyzeNewTables(other, "sandbox").finally(() => other.close())).toBe(0);
    await client.query(`DROP OWNED BY ${role}`);
    await client.query(`DROP ROLE ${role}`);
  });
});
