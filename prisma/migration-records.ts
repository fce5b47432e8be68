import type { Client } from "pg";
import type { Migration } from "./migration-files.ts";

/** A migration that a database has. */
export interface Applied {
  migration_name: string;
  checksum: string;
  finished_at: Date | null;
}

/** What a database says of its schema as a whole. */
export interface Schema {
  /** The newest release that migrated it. */
  release: string;
  /** A process has to know this migration to work on it; null: any may. */
  oldest: string | null;
}

/** The first as Prisma makes it; the second is ours. */
const TABLES = `CREATE TABLE IF NOT EXISTS public._prisma_migrations (
  id                  VARCHAR(36) PRIMARY KEY NOT NULL,
  checksum            VARCHAR(64) NOT NULL,
  finished_at         TIMESTAMPTZ,
  migration_name      VARCHAR(255) NOT NULL,
  logs                TEXT,
  rolled_back_at      TIMESTAMPTZ,
  started_at          TIMESTAMPTZ NOT NULL DEFAULT now(),
  applied_steps_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS public._sandgate_schema (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  release text NOT NULL,
  oldest  text
)`;

export async function makeRecords(client: Client): Promise<void> {
  await client.query(TABLES);
}

/** What is applied; nothing where it was never migrated. */
export async function readApplied(client: Client): Promise<Applied[]> {
  if (!(await hasTable(client, "_prisma_migrations"))) return [];
  const { rows } = await client.query<Applied>(
    "SELECT migration_name, checksum, finished_at FROM public._prisma_migrations WHERE rolled_back_at IS NULL",
  );
  return rows;
}

/** Undefined where only Prisma's own tools, or releases that wrote none, have migrated it. */
export async function readSchema(client: Client): Promise<Schema | undefined> {
  if (!(await hasTable(client, "_sandgate_schema"))) return undefined;
  const { rows } = await client.query<Schema>(
    "SELECT release, oldest FROM public._sandgate_schema",
  );
  return rows[0];
}

async function hasTable(client: Client, name: string): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    "SELECT to_regclass('public.' || $1) IS NOT NULL AS found",
    [name],
  );
  return rows[0]?.found ?? false;
}

/** In the transaction that applies it. */
export async function recordApplied(
  client: Client,
  { name, checksum, after }: Migration,
  release: string,
): Promise<void> {
  await client.query(
    `INSERT INTO public._prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
     VALUES (gen_random_uuid(), $1, $2, now(), clock_timestamp(), 1)`,
    [checksum, name],
  );
  await client.query(
    `INSERT INTO public._sandgate_schema (release, oldest) VALUES ($1, $2)
     ON CONFLICT (is_only) DO UPDATE
       SET release = excluded.release, oldest = greatest(_sandgate_schema.oldest, excluded.oldest)`,
    [release, after ?? null],
  );
}
