import type { Database } from "../../../prisma/database.ts";
import type { VolumeDay } from "../domain/list-usage.ts";
import { NO_USE } from "../domain/metrics.ts";
import { accruedWithin, DAY_MS, dateOf, dayOf, daysOf } from "./fragments.ts";
import type { DayUse, Span } from "./use.ts";

// `$1` is the organization, `$2` now. What a volume held up to its last sample is accrued, from then on it holds what
// it held then: one statement sees both in one snapshot, so nothing is in both or in neither.

/** What each volume held on each day of `span`, a relation of (since, until); with what `span` has beside. */
const HELD = (span: string, columns: string) => `
  SELECT ${columns}, a.volume_id, ${dayOf("a.day")} AS day, ${accruedWithin("a", "p.since", "p.until")} AS byte_ms
  FROM ${span} p, LATERAL (
    SELECT * FROM billing.storage_accruals a WHERE a.org_id = $1::uuid
      AND a.day >= ${dateOf(`p.since / ${DAY_MS}`)} AND a.day <= ${dateOf(`(p.until - 1) / ${DAY_MS}`)}
    OFFSET 0
  ) a
  UNION ALL
  SELECT ${columns}, s.volume_id, d.day, s.bytes::numeric * d.ms
  FROM ${span} p, billing.storage_samples s,
    LATERAL ${daysOf("greatest(billing.ms(s.at), p.since)", "least($2::float8::bigint, p.until)")} d
  WHERE s.org_id = $1::uuid`;

const SUM_STORAGE = `
WITH part AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($3::jsonb) AS p (part text, since bigint, until bigint) LIMIT 2
),
held AS (${HELD("part", "p.part")})
SELECT part, day::int, sum(byte_ms)::text AS storage FROM held GROUP BY part, day HAVING sum(byte_ms) > 0`;

/** The statement that sums what an organization's volumes held, and its values. */
export function sumStorageStatement(
  orgId: string,
  now: number,
  { before, within }: Record<DayUse["part"], Span>,
): [sql: string, ...values: unknown[]] {
  const parts = [
    { part: "before", ...before },
    { part: "within", ...within },
  ];
  return [SUM_STORAGE, orgId, now, JSON.stringify(parts)];
}

/** What an organization's volumes held, by day, before a window and within it, up to `now`; in no order. */
export async function sumStorage(
  database: Database,
  ...asked: Parameters<typeof sumStorageStatement>
): Promise<DayUse[]> {
  const rows = await database.query<{ part: DayUse["part"]; day: number; storage: string }>(
    ...sumStorageStatement(...asked),
  );
  return rows.map(({ part, day, storage }) => ({
    part,
    day,
    use: { ...NO_USE, storage: BigInt(storage) },
  }));
}

interface VolumeDayRow {
  volumeId: string;
  day: number;
  held: string;
  exists: boolean;
  name: string | null;
}

const VOLUME_DAYS = `
WITH span AS (SELECT $3::float8::bigint AS since, $4::float8::bigint AS until),
held AS (${HELD("span", "p.since")})
SELECT h.*, v.id IS NOT NULL AS exists, v.name FROM (
  SELECT volume_id AS "volumeId", day::int, sum(byte_ms)::text AS held FROM held GROUP BY volume_id, held.day HAVING sum(byte_ms) > 0
) h LEFT JOIN sandbox.volumes v ON v.id = h."volumeId" AND v.org_id = $1::uuid AND v.deleted_at IS NULL
ORDER BY h.day, h."volumeId"`;

/** What each volume held on each day of a span, by day, then by volume. */
export async function listVolumeDays(
  database: Database,
  orgId: string,
  now: number,
  { since, until }: Span,
): Promise<VolumeDay[]> {
  const rows = await database.query<VolumeDayRow>(VOLUME_DAYS, orgId, now, since, until);
  return rows.map(({ volumeId, day, held, exists, name }) => ({
    volumeId,
    day,
    held: BigInt(held),
    identity: exists ? { name } : undefined,
  }));
}

/** Bytes that volumes held when they were last measured; undefined: none ever was. */
export async function findStoredBytes(
  database: Database,
  orgId: string,
): Promise<bigint | undefined> {
  const [row] = await database.query<{ bytes: string | null }>(
    `SELECT coalesce(sum(bytes), CASE WHEN EXISTS (
       SELECT FROM billing.storage_accruals WHERE org_id = $1::uuid
     ) THEN 0 END)::text AS bytes
     FROM billing.storage_samples WHERE org_id = $1::uuid`,
    orgId,
  );
  return row?.bytes == null ? undefined : BigInt(row.bytes);
}
