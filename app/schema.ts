import type { Database } from "../prisma/database.ts";
import { migrate } from "../prisma/migrate.ts";
import { readMigrationState } from "../prisma/migration-state.ts";
import { watchSchema } from "../prisma/schema-fit.ts";
import type { MigrateChoice } from "../runtime/config.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Logger } from "../runtime/log.ts";

/** The schema is older than this version, and whoever said so may not migrate it. */
export class SchemaDue extends StartupError {}

/**
 * Brings the schema up to date, or sees that somebody has.
 * @throws SchemaDue; StartupError where this version cannot work on it
 */
export async function provideSchema(
  url: string,
  choice: MigrateChoice,
  log: Pick<Logger, "warn" | "info">,
): Promise<void> {
  if (choice === "on") {
    const applied = await migrate(url);
    if (applied.length > 0) log.info({ applied }, "migrated the database");
  }
  const { due, newer, faults, release } = await readMigrationState(url);
  const [fault] = faults;
  if (fault !== undefined) throw new StartupError(fault);
  if (due.length > 0)
    throw new SchemaDue(
      `The database lacks ${due.length} migrations of this version, and MIGRATE=off: run npm run cli -- migrate`,
    );
  if (newer.length > 0)
    log.warn(
      { release, newer },
      "a newer release has migrated the database; this one works beside it until it is replaced",
    );
}

/** Asks whether this version can work on the schema, which a newer release may change at any time. */
export function watchFit(database: Database, log: Pick<Logger, "warn">) {
  return watchSchema(database, (release) =>
    log.warn({ release }, "another release has migrated the database beside this process"),
  );
}
