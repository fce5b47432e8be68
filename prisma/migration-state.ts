import type { Client } from "pg";
import { withClient } from "../runtime/postgres/connect.ts";
import { MIGRATIONS, type Migration, readMigrations } from "./migration-files.ts";
import { type Applied, readApplied, readSchema, type Schema } from "./migration-records.ts";

/** Where a database stands against this version's files. */
export interface MigrationState {
  applied: string[];
  /** Not applied yet. */
  due: string[];
  /** Applied by a newer release, beside whose schema this version still works. */
  newer: string[];
  /** The newest release that migrated it; undefined: none that says so. */
  release: string | undefined;
  /** Why this version cannot work on it, in sentences. */
  faults: string[];
}

/** Looks at a database and changes nothing; an empty one has everything due. */
export async function readMigrationState(
  url: string,
  folder: string = MIGRATIONS,
): Promise<MigrationState> {
  const migrations = await readMigrations(folder);
  return withClient(url, (client) => stateOf(client, migrations));
}

export async function stateOf(
  client: Client,
  migrations: readonly Migration[],
): Promise<MigrationState> {
  const rows = await readApplied(client);
  const schema = await readSchema(client);
  const known = new Set(migrations.map(({ name }) => name));
  const done = new Set(rows.map((row) => row.migration_name));
  const newer = [...done].filter((name) => !known.has(name)).sort();
  const due = migrations.map(({ name }) => name).filter((name) => !done.has(name));
  const faults = [
    ...rows.map((row) => ofRecord(row, migrations)),
    newer.length > 0 ? ofNewer(newer, due, schema, known) : undefined,
  ].filter((fault) => fault !== undefined);
  return { applied: [...done].sort(), due, newer, release: schema?.release, faults };
}

function ofRecord(row: Applied, migrations: readonly Migration[]): string | undefined {
  const known = migrations.find(({ name }) => name === row.migration_name);
  const fault = faultOf(row, known);
  return fault && `The database's migration ${row.migration_name} ${fault}`;
}

function faultOf(row: Applied, known: Migration | undefined): string | undefined {
  if (row.finished_at === null) return "stopped half way: repair it with `prisma migrate resolve`";
  if (known && known.checksum !== row.checksum)
    return "was made from another text than this version's file";
  return undefined;
}

/** A newer release has migrated: this one may go on for as long as nothing that it uses was taken away. */
function ofNewer(
  newer: readonly string[],
  due: readonly string[],
  schema: Schema | undefined,
  known: ReadonlySet<string>,
): string | undefined {
  const what = `The database's migration ${newer.at(-1)} is unknown to this version of Sandgate`;
  if (!schema) return `${what}: run the version that made it, or a newer one`;
  const { release, oldest } = schema;
  if (due.length > 0)
    return `${what}, which has ${due[0]} in its place: run release ${release}, which made it, or a newer one`;
  if (oldest === null || known.has(oldest)) return undefined;
  return `This version of Sandgate is too old for the database, which release ${release} has migrated: run that, or one not older than the migration ${oldest}`;
}
