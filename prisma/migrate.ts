import { type Client, DatabaseError } from "pg";
import { StartupError } from "../runtime/errors.ts";
import { withClient } from "../runtime/postgres/connect.ts";
import { VERSION } from "../runtime/version.ts";
import { MIGRATIONS, type Migration, readMigrations } from "./migration-files.ts";
import { makeRecords, recordApplied } from "./migration-records.ts";
import { stateOf } from "./migration-state.ts";

/** The lock that Prisma's own tools take, so that they and several of us queue. */
const LOCK = 72707369;

/**
 * Brings a database up to date, and leaves it as `prisma migrate deploy` would. One that a newer release has migrated is
 * left alone where this one may work on it.
 * @param folder of folders, each with a `migration.sql`
 * @returns the names of the migrations it applied
 * @throws StartupError where the database refuses, or was migrated by something else than these files
 */
export async function migrate(
  url: string,
  folder: string = MIGRATIONS,
  release: string = VERSION,
): Promise<string[]> {
  const migrations = await readMigrations(folder);
  try {
    return await withClient(url, (client) => applyDue(client, migrations, release));
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new StartupError(`The database cannot be migrated: ${error.message}`, { cause: error });
  }
}

async function applyDue(
  client: Client,
  migrations: readonly Migration[],
  release: string,
): Promise<string[]> {
  // Goes with the connection.
  await client.query("SELECT pg_advisory_lock($1)", [LOCK]);
  await makeRecords(client);
  const { due, faults } = await stateOf(client, migrations);
  const [fault] = faults;
  if (fault !== undefined) throw new StartupError(fault);
  const wanted = migrations.filter(({ name }) => due.includes(name));
  for (const migration of wanted) await apply(client, migration, release);
  return due;
}

/** All of a migration and its record, or nothing. */
async function apply(client: Client, migration: Migration, release: string): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(migration.sql);
    await recordApplied(client, migration, release);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK").catch(() => undefined);
    const why = error instanceof Error ? error.message : String(error);
    throw new StartupError(`The migration ${migration.name} cannot be applied: ${why}`, {
      cause: error,
    });
  }
}
