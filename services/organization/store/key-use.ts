import type { Database } from "../../../prisma/database.ts";

/** When keys were used; an older time, or one to come, changes nothing or less. Unknown keys are passed over. */
export async function recordKeyUse(
  database: Database,
  uses: readonly { apiKeyId: string; usedAt: Date }[],
): Promise<void> {
  if (uses.length === 0) return;
  await database.query(
    RECORD_USE,
    uses.map(({ apiKeyId }) => apiKeyId),
    uses.map(({ usedAt }) => usedAt.toISOString()),
  );
}

// Rows are locked in one order, so that gateways that report at once do not wait for each other in a ring.
const RECORD_USE = `
WITH used AS (
  SELECT id, least(max(at), clock_timestamp()) AS at
  FROM unnest($1::uuid[], $2::timestamptz[]) AS given (id, at) GROUP BY id
),
locked AS MATERIALIZED (
  SELECT k.id, used.at FROM organization.api_keys k JOIN used ON used.id = k.id
  WHERE k.last_used_at IS NULL OR k.last_used_at < used.at
  ORDER BY k.id FOR NO KEY UPDATE OF k
)
UPDATE organization.api_keys k SET last_used_at = greatest(k.last_used_at, locked.at)
FROM locked WHERE k.id = locked.id RETURNING k.id`;
