import type { Database } from "./database.ts";

/**
 * The rows of a statement by way of one JSON text, which for many rows costs a fraction of what Prisma takes for each value.
 * Times come as text, integers of eight bytes as numbers.
 */
export async function queryJson<Row>(
  database: Database,
  sql: string,
  ...values: unknown[]
): Promise<Row[]> {
  const [all] = await database.query<{ rows: string | null }>(
    `SELECT json_agg(r)::text AS rows FROM (${sql}) r`,
    ...values,
  );
  return all?.rows ? JSON.parse(all.rows) : [];
}
