import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase } from "../../prisma/database.ts";
import { type PostgresServer, startPostgres } from "../../runtime/postgres/server.ts";

let folder: string;
let postgres: PostgresServer;
let database: Database;
const unavailable = { reason: "SERVICE_UNAVAILABLE" };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-down-"));
  postgres = await startPostgres({ folder });
  database = openDatabase(postgres.url("postgres"), { poolSize: 2 });
});
afterAll(async () => {
  await database.close();
  await rm(folder, { recursive: true, force: true });
});

test("a statement that is refused stays what it is", async () => {
  await expect(database.query("SELECT 1/0")).rejects.not.toMatchObject(unavailable);
});

test("a server that only reads does not answer a change", async () => {
  const readOnly = new URL(postgres.url("postgres"));
  readOnly.searchParams.set("options", "-c default_transaction_read_only=on");
  const standby = openDatabase(readOnly.href, { poolSize: 1 });
  try {
    await expect(standby.query("CREATE TABLE t (n int)")).rejects.toMatchObject(unavailable);
  } finally {
    await standby.close();
  }
});

test("without its PostgreSQL every call says so: one under way, one by statement, one by model", async () => {
  await database.query("SELECT 1 AS one");
  const underWay = expect(database.query("SELECT count(pg_sleep(60))")).rejects.toMatchObject(
    unavailable,
  );
  await postgres.stop();
  await underWay;
  await expect(database.query("SELECT 1 AS one")).rejects.toMatchObject(unavailable);
  await expect(database.prisma.lease.findMany()).rejects.toMatchObject(unavailable);
});

test("when it is back so are the answers", async () => {
  postgres = await startPostgres({ folder });
  await expect.poll(() => database.query("SELECT 1 AS one").catch(() => [])).toEqual([{ one: 1 }]);
  await postgres.stop();
});
