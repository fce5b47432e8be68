import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "../../prisma/migrate.ts";
import { StartupError } from "../../runtime/errors.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let folder: string;

beforeEach(async () => {
  database = await createEmptyDatabase();
  folder = await mkdtemp(join(tmpdir(), "sandgate-migrations-"));
});

afterEach(async () => {
  await database.close();
  await rm(folder, { recursive: true });
});

async function write(name: string, sql: string): Promise<void> {
  await mkdir(join(folder, name), { recursive: true });
  await writeFile(join(folder, name, "migration.sql"), sql);
}

const rows = <Row extends object>(sql: string) =>
  withClient(database.url, async (client) => (await client.query<Row>(sql)).rows);

test("applies in order of name, once", async () => {
  await write("2_second", "INSERT INTO t VALUES (2)");
  await write("1_first", "CREATE TABLE t (n int)");
  expect(await migrate(database.url, folder)).toEqual(["1_first", "2_second"]);
  expect(await migrate(database.url, folder)).toEqual([]);
  expect(await rows("SELECT n FROM t")).toEqual([{ n: 2 }]);
});

test("five that start at once apply once", async () => {
  await write("1_first", "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
  const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(database.url, folder)));
  expect(applied.flat()).toEqual(["1_first"]);
  expect(await rows("SELECT migration_name FROM _prisma_migrations")).toHaveLength(1);
});

test("a migration that fails leaves nothing, and can be tried again", async () => {
  await write("1_first", "CREATE TABLE t (n int); SELECT 1 / 0");
  await expect(migrate(database.url, folder)).rejects.toThrow(
    new StartupError("The migration 1_first cannot be applied: division by zero"),
  );
  expect(await rows("SELECT to_regclass('t') AS t")).toEqual([{ t: null }]);
  await write("1_first", "CREATE TABLE t (n int)");
  expect(await migrate(database.url, folder)).toEqual(["1_first"]);
});

test("refuses a database whose migrations are not these files", async () => {
  await write("1_first", "CREATE TABLE t (n int)");
  await write("2_newer", "CREATE TABLE u (n int)");
  await migrate(database.url, folder);
  await write("1_first", "CREATE TABLE t (n bigint)");
  await expect(migrate(database.url, folder)).rejects.toThrow(/1_first was made from another text/);
  await write("1_first", "CREATE TABLE t (n int)");
  await rm(join(folder, "2_newer"), { recursive: true });
  await expect(migrate(database.url, folder)).rejects.toThrow(/2_newer is unknown/);
});

test("refuses a database where Prisma stopped half way", async () => {
  await write("1_first", "CREATE TABLE t (n int)");
  await migrate(database.url, folder);
  await rows("UPDATE _prisma_migrations SET finished_at = NULL");
  await expect(migrate(database.url, folder)).rejects.toThrow(/1_first stopped half way/);
});

test("a user who may not make tables is told so", async () => {
  const role = `poor_${Date.now()}`;
  await rows(`CREATE ROLE ${role} LOGIN`);
  const url = new URL(database.url);
  url.username = role;
  await expect(migrate(url.href, folder)).rejects.toThrow(
    new StartupError("The database cannot be migrated: permission denied for schema public"),
  );
  await rows(`DROP ROLE ${role}`);
});

test("records what Prisma would", async () => {
  const migrated = await createTestDatabase();
  const sql = await readFile("prisma/migrations/20261121000000_init/migration.sql");
  const [record] = await withClient(migrated.url, async (client) => {
    const query =
      "SELECT *, encode(sha256($1), 'hex') = checksum AS matches FROM _prisma_migrations";
    return (await client.query(query, [sql])).rows;
  });
  await migrated.close();
  expect(record).toMatchObject({
    migration_name: "20261121000000_init",
    matches: true,
    logs: null,
    rolled_back_at: null,
    applied_steps_count: 1,
    finished_at: expect.any(Date),
    started_at: expect.any(Date),
  });
});
