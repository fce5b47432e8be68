import { existsSync } from "node:fs";
import { join } from "node:path";
import { migrate } from "../prisma/migrate.ts";
import { readMigrationState } from "../prisma/migration-state.ts";
import type { Config } from "../runtime/config.ts";
import { prepareDataDir } from "../runtime/data-dir.ts";
import { readConfig } from "../runtime/env.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import { checkDatabase } from "../runtime/postgres/connect.ts";
import { reachPostgres } from "../runtime/postgres/reach.ts";
import { VERSION } from "../runtime/version.ts";

/** Where the program's database stands. */
export interface Migrated {
  /** This one. */
  release: string;
  /** The newest that has migrated the database; null: none that says so. */
  migratedBy: string | null;
  /** What was applied just now. */
  applied: string[];
  /** What of this release is not applied. */
  due: string[];
  /** What a newer release has applied. */
  newer: string[];
  /** Why this release cannot work on it, in sentences. */
  faults: string[];
}

export interface MigrationOptions {
  env: NodeJS.ProcessEnv;
  lifecycle: Lifecycle;
  /** Only looks. */
  statusOnly: boolean;
}

/**
 * Brings the program's database up to date, whatever MIGRATE says, whether the program runs or not.
 * @throws StartupError where it cannot be reached or migrated
 */
export async function migrateDatabase(options: MigrationOptions): Promise<Migrated> {
  const { env, lifecycle, statusOnly } = options;
  const url = await reach(readConfig(env), lifecycle, statusOnly);
  const applied = statusOnly ? [] : await migrate(url);
  const { due, newer, faults, release } = await readMigrationState(url);
  return { release: VERSION, migratedBy: release ?? null, applied, due, newer, faults };
}

async function reach(config: Config, lifecycle: Lifecycle, statusOnly: boolean): Promise<string> {
  const { databaseUrl, dataDir } = config;
  if (databaseUrl !== undefined) {
    await checkDatabase(databaseUrl);
    return databaseUrl;
  }
  const folder = join(dataDir, "postgres");
  if (statusOnly && !existsSync(join(folder, "data", "PG_VERSION")))
    throw new StartupError(`There is no database under ${dataDir} (DATA_DIR) yet`);
  await prepareDataDir(dataDir);
  const server = await lifecycle.start("PostgreSQL", {
    start: () => reachPostgres(folder),
    end: (reached) => reached.release(),
    always: true,
  });
  return server.url;
}
