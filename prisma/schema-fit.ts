import { type Database, refusal } from "./database.ts";
import { MIGRATIONS, readMigrations } from "./migration-files.ts";
import type { Schema } from "./migration-records.ts";

const NO_SUCH_TABLE = "42P01";

/**
 * Asks whether this version may still work on a schema that it found fit, however often, by one small query.
 * @param onRelease called when another release has migrated it meanwhile
 */
export async function watchSchema(
  database: Database,
  onRelease: (release: string) => void,
  folder: string = MIGRATIONS,
): Promise<() => Promise<boolean>> {
  const known = new Set((await readMigrations(folder)).map(({ name }) => name));
  let seen = (await readSchema(database))?.release;
  return async () => {
    const schema = await readSchema(database);
    if (!schema) return true;
    if (schema.release !== seen) onRelease(schema.release);
    seen = schema.release;
    return schema.oldest === null || known.has(schema.oldest);
  };
}

async function readSchema(database: Database): Promise<Schema | undefined> {
  try {
    const rows = await database.query<Schema>(
      "SELECT release, oldest FROM public._sandgate_schema",
    );
    return rows[0];
  } catch (error) {
    // Prisma's own tools have migrated it, which say nothing of this.
    if (refusal(error)?.code === NO_SUCH_TABLE) return undefined;
    throw error;
  }
}
