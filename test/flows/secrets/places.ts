import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Client } from "pg";
import { withClient } from "../../../runtime/postgres/connect.ts";
import type { Place } from "./needles.ts";

/** Every row of every table that is not PostgreSQL's own, as text, and each of its values of bytes as they are. */
export function readTables(databaseUrl: string): Promise<Place[]> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ name: string; byteColumns: string[] }>(
      `SELECT format('%I.%I', n.nspname, c.relname) AS name,
              array(SELECT quote_ident(a.attname) FROM pg_attribute a
                    WHERE a.attrelid = c.oid AND a.atttypid = 'bytea'::regtype AND NOT a.attisdropped) AS "byteColumns"
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')`,
    );
    const places = await inTurn(rows, (row) => readTable(client, row));
    return places.flat();
  });
}

async function readTable(client: Client, table: { name: string; byteColumns: string[] }) {
  const { name, byteColumns } = table;
  const { rows } = await client.query<{ text: string }>(`SELECT t::text AS text FROM ${name} t`);
  const places: Place[] = rows.map(({ text }) => ({ name, text }));
  for (const column of byteColumns) {
    const found = await client.query<{ value: Buffer | null }>(
      `SELECT ${column} AS value FROM ${name}`,
    );
    for (const { value } of found.rows)
      if (value) places.push({ name: `${name}.${column}`, text: value.toString("latin1") });
  }
  return places;
}

/** Every file of a folder, byte by byte. */
export async function readFiles(folder: string): Promise<Place[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  return inTurn(files, async (path) => ({
    name: path,
    text: await readFile(join(folder, path), "latin1"),
  }));
}

// One at a time: a connection takes one query, and files of a database are large.
async function inTurn<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const item of items) results.push(await work(item));
  return results;
}
