import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../../prisma/database.ts";
import { migrate } from "../../prisma/migrate.ts";
import { readMigrationState } from "../../prisma/migration-state.ts";
import { watchSchema } from "../../prisma/schema-fit.ts";
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
  await migrate(database.url, folder);
  await write("1_first", "CREATE TABLE t (n bigint)");
  await expect(migrate(database.url, folder)).rejects.toThrow(/1_first was made from another text/);
});

describe("an older release, on a database that a newer one has migrated", () => {
  const older = async () => {
    await rm(join(folder, "2_newer"), { recursive: true });
    return folder;
  };
  beforeEach(() => write("1_first", "CREATE TABLE t (n int)"));

  test("goes on beside what was only added", async () => {
    await write("2_newer", "CREATE TABLE u (n int)");
    await migrate(database.url, folder, "0.2.0");
    expect(await migrate(database.url, await older(), "0.1.0")).toEqual([]);
    expect(await readMigrationState(database.url, folder)).toMatchObject({
      due: [],
      newer: ["2_newer"],
      faults: [],
      release: "0.2.0",
    });
  });

  test("goes on beside a contract step that took away what it no longer used", async () => {
    await write("2_newer", "-- contract, after 1_first\nDROP TABLE IF EXISTS u");
    await migrate(database.url, folder, "0.2.0");
    expect(await migrate(database.url, await older(), "0.1.0")).toEqual([]);
  });

  test("is refused where what it uses was taken away, and told what to run", async () => {
    await write("2_newer", "ALTER TABLE t ADD COLUMN m int");
    await write("3_contract", "-- contract, after 2_newer\nALTER TABLE t DROP COLUMN n");
    await migrate(database.url, folder, "0.3.0");
    await rm(join(folder, "3_contract"), { recursive: true });
    expect(await migrate(database.url, folder, "0.2.0")).toEqual([]);
    await expect(migrate(database.url, await older(), "0.1.0")).rejects.toThrow(
      /^This version of Sandgate is too old for the database, which release 0.3.0 has migrated.* 2_newer$/,
    );
  });

  test("is refused where it has migrations of its own that the database lacks", async () => {
    await write("2_newer", "CREATE TABLE u (n int)");
    await migrate(database.url, folder, "0.2.0");
    await write("1_other", "CREATE TABLE v (n int)");
    await expect(migrate(database.url, await older(), "0.1.0")).rejects.toThrow(
      /2_newer is unknown to this version of Sandgate, which has 1_other in its place/,
    );
    expect(await rows("SELECT to_regclass('v') AS v")).toEqual([{ v: null }]);
  });

  test("is refused where nobody wrote down what it may work on", async () => {
    await write("2_newer", "CREATE TABLE u (n int)");
    await migrate(database.url, folder, "0.2.0");
    await rows("DROP TABLE _sandgate_schema");
    await expect(migrate(database.url, await older())).rejects.toThrow(/2_newer is unknown/);
  });
});

test("a contract step has to name a migration before it", async () => {
  await write("1_first", "-- contract, after 2_second\nSELECT 1");
  await write("2_second", "SELECT 1");
  await expect(migrate(database.url, folder)).rejects.toThrow(/1_first contracts after 2_second/);
});

test("a process that runs goes on while columns and tables are added under it, and sees when it is too old", async () => {
  await write("1_first", "CREATE TABLE t (n int, s text); INSERT INTO t VALUES (1, 'one')");
  await migrate(database.url, folder, "0.1.0");
  const running = openDatabase(database.url, { poolSize: 1 });
  const releases: string[] = [];
  const fits = await watchSchema(running, (release) => releases.push(release), folder);
  // Prepared on the one connection before the table changes.
  const read = () => running.query("SELECT t.n, t.s FROM t");
  expect(await read()).toEqual([{ n: 1, s: "one" }]);
  await write(
    "2_newer",
    "ALTER TABLE t ADD COLUMN m int NOT NULL DEFAULT 7; CREATE INDEX ON t (m)",
  );
  await migrate(database.url, folder, "0.2.0");
  expect(await read()).toEqual([{ n: 1, s: "one" }]);
  expect([await fits(), releases]).toEqual([true, ["0.2.0"]]);
  await write("3_contract", "-- contract, after 2_newer\nALTER TABLE t DROP COLUMN s");
  await migrate(database.url, folder, "0.3.0");
  expect([await fits(), releases]).toEqual([false, ["0.2.0", "0.3.0"]]);
  await running.close();
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
