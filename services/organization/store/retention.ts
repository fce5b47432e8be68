import type { Database } from "../../../prisma/database.ts";

/** Rows that one statement deletes: few enough that nobody waits for it. */
export const BATCH = 1_000;

/** Deletes a batch of idempotency records that have expired. @returns how many */
export function deleteExpiredIdempotency(database: Database): Promise<number> {
  return deleteBatch(database, EXPIRED_IDEMPOTENCY);
}

/** Deletes a batch of audit events that are older. @returns how many */
export function deleteOldEvents(database: Database, days: number): Promise<number> {
  return deleteBatch(database, OLD_EVENTS, days);
}

async function deleteBatch(database: Database, sql: string, ...values: unknown[]): Promise<number> {
  const [row] = await database.query<{ n: number }>(sql, ...values);
  return row?.n ?? 0;
}

export const EXPIRED_IDEMPOTENCY = batch(
  "organization.idempotency",
  "expires_at <= now()",
  "expires_at",
);
// An event's id begins with its time.
export const OLD_EVENTS = batch(
  "organization.events",
  "id < organization.uuid7_floor(now() - $1::int * interval '1 day')",
  "id",
);

// The oldest first, by index; what another process has in hand is left to it. The limit is written out, for a
// parameter would be planned as a part of the table.
function batch(table: string, condition: string, order: string): string {
  return `
WITH gone AS (
  DELETE FROM ${table} WHERE ctid = ANY(ARRAY(
    SELECT ctid FROM ${table} WHERE ${condition} ORDER BY ${order} LIMIT ${BATCH} FOR UPDATE SKIP LOCKED))
  RETURNING 1
)
SELECT count(*)::int AS n FROM gone`;
}
