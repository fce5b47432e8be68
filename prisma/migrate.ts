import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Client, DatabaseError } from "pg";
import { StartupError } from "../runtime/errors.ts";
import { withClient } from "../runtime/postgres/connect.ts";

interface Migration {
  name: string;
  sql: string;
  /** SHA-256 of the file, in hexadecimal. */
  checksum: string;
}

interface Applied {
  migration_name: string;
  checksum: string;
  finished_at: Date | null;
}

/** The lock that Prisma's own tools take, so that they and several of us queue. */
const LOCK = 72707369;

const MIGRATIONS = fileURLToPath(new URL("./migrations", import.meta.url));

/** As Prisma makes it. */
const TABLE = `CREATE TABLE IF NOT EXISTS public._prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
)`;

/**
 * Brings a database up to date, and leaves it as `prisma migrate deploy` would.
 * @param folder of folders, each with a `migration.sql`
 * @returns the names of the migrations it applied
 * @throws StartupError where the database refuses, or was migrated by something else than these files
 */
export async function migrate(url: string, folder: string = MIGRATIONS): Promise<string[]> {
  const migrations = await readMigrations(folder);
  try {
    return await withClient(url, (client) => applyDue(client, migrations));
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new StartupError(`The database cannot be migrated: ${error.message}`);
  }
}

/** Where a database stands against these files. */
export interface MigrationState {
  applied: string[];
  /** Not applied yet. */
  due: string[];
  /** Why this version cannot work on it, in sentences. */
  faults: string[];
}

/** Looks at a database and changes nothing; an empty one has everything due. */
export async function readMigrationState(
  url: string,
  folder: string = MIGRATIONS,
): Promise<MigrationState> {
  const migrations = await readMigrations(folder);
  const rows = await withClient(url, async (client) =>
    (await hasTable(client)) ? readApplied(client) : [],
  );
  const done = new Set(rows.map((row) => row.migration_name));
  return {
    applied: [...done].sort(),
    due: migrations.map(({ name }) => name).filter((name) => !done.has(name)),
    faults: rows.map((row) => sentenceOf(row, migrations)).filter((fault) => fault !== undefined),
  };
}

async function hasTable(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    "SELECT to_regclass('public._prisma_migrations') IS NOT NULL AS found",
  );
  return rows[0]?.found ?? false;
}

async function applyDue(client: Client, migrations: Migration[]): Promise<string[]> {
  // Goes with the connection.
  await client.query("SELECT pg_advisory_lock($1)", [LOCK]);
  await client.query(TABLE);
  const due = findDue(migrations, await readApplied(client));
  for (const migration of due) await apply(client, migration);
  return due.map(({ name }) => name);
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return Promise.all(
    names.sort().map(async (name) => {
      const sql = await readFile(join(folder, name, "migration.sql"), "utf8");
      return { name, sql, checksum: createHash("sha256").update(sql).digest("hex") };
    }),
  );
}

async function readApplied(client: Client): Promise<Applied[]> {
  const { rows } = await client.query<Applied>(
    "SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL",
  );
  return rows;
}

function findDue(migrations: Migration[], applied: Applied[]): Migration[] {
  for (const row of applied) {
    const fault = sentenceOf(row, migrations);
    if (fault) throw new StartupError(fault);
  }
  const done = new Set(applied.map((row) => row.migration_name));
  return migrations.filter(({ name }) => !done.has(name));
}

function sentenceOf(row: Applied, migrations: Migration[]): string | undefined {
  const known = migrations.find(({ name }) => name === row.migration_name);
  const fault = faultOf(row, known);
  return fault && `The database's migration ${row.migration_name} ${fault}`;
}

function faultOf(row: Applied, known: Migration | undefined): string | undefined {
  if (!known)
    return "is unknown to this version of Sandgate: run the version that made it, or a newer one";
  if (known.checksum !== row.checksum) return "was made from another text than this version's file";
  if (row.finished_at === null) return "stopped half way: repair it with `prisma migrate resolve`";
  return undefined;
}

/** All of a migration and its record, or nothing. */
async function apply(client: Client, { name, sql, checksum }: Migration): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(sql);
    await client.query(
      `INSERT INTO public._prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       VALUES (gen_random_uuid(), $1, $2, now(), clock_timestamp(), 1)`,
      [checksum, name],
    );
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    const why = error instanceof Error ? error.message : String(error);
    throw new StartupError(`The migration ${name} cannot be applied: ${why}`);
  }
}
