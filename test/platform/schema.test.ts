import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createTestDatabase } from "../support/database.ts";

// What Prisma's own comparison would say of tables, columns and primary keys; its engine is not there to be asked.
// Indexes, checks and functions it could not express: those are the migrations' alone.

const TYPES: Partial<Record<string, string>> = {
  String: "text",
  Int: "integer",
  BigInt: "bigint",
  Boolean: "boolean",
  Json: "jsonb",
  Bytes: "bytea",
  Uuid: "uuid",
  Date: "date",
  Decimal: "numeric",
  "Timestamptz(6)": "timestamp(6) with time zone",
};

/** A line a column, such as `sandbox.runs.due_at timestamp(6) with time zone`, with `null`, `key` where that is so. */
async function inPrisma(): Promise<string[]> {
  const names = (await readdir("prisma")).filter((name) => name.endsWith(".prisma"));
  const files = await Promise.all(names.map((name) => readFile(join("prisma", name), "utf8")));
  const models = files.flatMap((text) => [...text.matchAll(/^model \w+ \{\n(.*?)^\}/gms)]);
  return models.flatMap(([, body = ""]) => columnsOf(body)).sort();
}

function columnsOf(body: string): string[] {
  const table = `${/@@schema\("(\w+)"\)/.exec(body)?.[1]}.${/@@map\("(\w+)"\)/.exec(body)?.[1]}`;
  const keys = /@@id\(\[([\w, ]+)\]\)/.exec(body)?.[1]?.split(", ") ?? [];
  const fields = body.matchAll(/^ {2}(\w+) +(\w+)(\?|\[\])?(.*)$/gm);
  return [...fields].flatMap(([, field = "", kind = "", mark = "", rest = ""]) => {
    const type = TYPES[/@db\.(\w+(?:\(\d\))?)/.exec(rest)?.[1] ?? kind];
    // A relation is no column.
    if (type === undefined) return [];
    const column = /@map\("(\w+)"\)/.exec(rest)?.[1] ?? field;
    const isKey = keys.includes(field) || /@id\b/.test(rest);
    return line(`${table}.${column}`, type + (mark === "[]" ? "[]" : ""), mark === "?", isKey);
  });
}

function line(column: string, type: string, isNullable: boolean, isKey: boolean): string {
  return `${column} ${type}${isNullable ? " null" : ""}${isKey ? " key" : ""}`;
}

async function inDatabase(): Promise<string[]> {
  const { url, close } = await createTestDatabase();
  const columns = await withClient(url, async (client) => {
    const { rows } = await client.query<Parameters<typeof line>>({
      text: `SELECT format('%s.%s', c.oid::regclass, a.attname), format_type(a.atttypid, a.atttypmod), NOT a.attnotnull,
                    EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND a.attnum = ANY(i.indkey))
             FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
               AND c.relnamespace::regnamespace::text IN ('organization', 'sandbox', 'orchestrator', 'billing')`,
      rowMode: "array",
    });
    return rows.map((row) => line(...row));
  });
  await close();
  return columns.sort();
}

test("Prisma's models are the tables that the migrations make", async () => {
  const columns = await inDatabase();
  expect(columns.length).toBeGreaterThan(100);
  expect(await inPrisma()).toEqual(columns);
});
