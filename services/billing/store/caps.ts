import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { Limits } from "../domain/limits.ts";
import type { Pool, Rates } from "../domain/pools.ts";
import { billed, dateOf } from "./fragments.ts";

/** An organization on a hard-capped plan, or one whose pool was found used up. */
export interface Capped {
  orgId: string;
  hardCap: boolean;
  limits: Limits;
  /** Of this month, up to now. */
  used: Rates;
  /** What open runs add each millisecond. */
  rates: Rates;
  /** What was found before. */
  exhaustion: Exhaustion | undefined;
}

export interface Exhaustion {
  /** Which of all that ever were; the organization's next one has another. */
  stamp: string;
  pool: string;
  /** Whether it is of this month. */
  current: boolean;
  /** Milliseconds since then. */
  age: number;
}

interface CappedRow extends Omit<Capped, "used" | "rates" | "exhaustion"> {
  vcpu: string;
  memory: string;
  vcpuRate: string;
  memoryRate: string;
  exhaustion: Exhaustion | null;
}

// `$1` is now, `$2` the first instant of the month, `$3` its first day. What is rolled up is past, so all of the
// month's days count. Organizations without a hard cap are not even looked at.
const CAPPED = `
WITH concerned (id) AS (
  SELECT s.org_id FROM billing.plans p JOIN billing.subscriptions s ON s.plan = p.name WHERE p.hard_cap
  UNION
  SELECT o.id FROM organization.organizations o
  WHERE (SELECT hard_cap FROM billing.plans WHERE is_default)
    AND NOT EXISTS (SELECT FROM billing.subscriptions s WHERE s.org_id = o.id)
  UNION
  SELECT org_id FROM billing.exhaustions
)
SELECT o.id AS "orgId", p.hard_cap AS "hardCap", l.limits,
       CASE WHEN x.org_id IS NOT NULL THEN jsonb_build_object('stamp', x.at::text, 'pool', x.pool,
         'current', x.month = ${dateOf("$3::int")}, 'age', $1::float8 - billing.ms(x.at)) END AS exhaustion,
       (coalesce(d.vcpu, 0) + coalesce(r.vcpu, 0))::text AS vcpu,
       (coalesce(d.memory, 0) + coalesce(r.memory, 0))::text AS memory,
       coalesce(r.vcpu_rate, 0)::text AS "vcpuRate", coalesce(r.memory_rate, 0)::text AS "memoryRate"
FROM concerned o
JOIN billing.plans p ON p.name = billing.plan_of(o.id)
LEFT JOIN billing.exhaustions x ON x.org_id = o.id,
LATERAL (SELECT billing.limits(o.id) - 'exhausted_pool' AS limits OFFSET 0) l,
LATERAL (
  SELECT sum(vcpu) AS vcpu, sum(memory) AS memory FROM billing.daily
  WHERE org_id = o.id AND day >= ${dateOf("$3::int")}
) d,
LATERAL (
  SELECT sum(r.vcpus * c.ms) AS vcpu, sum(r.memory_mib * c.ms) AS memory,
         sum(r.vcpus) FILTER (WHERE c.goes_on) AS vcpu_rate, sum(r.memory_mib) FILTER (WHERE c.goes_on) AS memory_rate
  FROM sandbox.runs r, LATERAL ${billed("r", "$1::float8::bigint")} b,
       LATERAL (SELECT greatest(0, b.until - greatest(b.since, $2::float8::bigint)) AS ms,
                       r.closed_at IS NULL AND r.stop_admitted_at IS NULL AS goes_on) c
  WHERE r.org_id = o.id AND r.running_at IS NOT NULL AND r.metered_at IS NULL
) r
WHERE x.org_id IS NOT NULL OR p.hard_cap
  AND (l.limits->>'included_vcpu_hours' IS NOT NULL OR l.limits->>'included_memory_gib_hours' IS NOT NULL)`;

/** @param month its first instant; `day` the same in days */
export async function listCapped(
  database: Database,
  now: number,
  month: { start: number; day: number },
): Promise<Capped[]> {
  const rows = await database.query<CappedRow>(CAPPED, now, month.start, month.day);
  return rows.map(({ orgId, hardCap, limits, exhaustion, ...row }) => ({
    orgId,
    hardCap,
    limits,
    used: { vcpu: BigInt(row.vcpu), memory: BigInt(row.memory) },
    rates: { vcpu: BigInt(row.vcpuRate), memory: BigInt(row.memoryRate) },
    exhaustion: exhaustion ?? undefined,
  }));
}

/** Of any number that find it at once one writes it, and the event. @returns whether this one did */
export async function insertExhaustion(
  database: Database,
  { orgId, pool, day }: { orgId: string; pool: Pool; day: number },
  actor: Actor,
): Promise<boolean> {
  const rows = await database.query(
    `WITH made AS (
       INSERT INTO billing.exhaustions (org_id, month, pool, at)
       VALUES ($1::uuid, ${dateOf("$2::int")}, $3, clock_timestamp()) ON CONFLICT DO NOTHING RETURNING *
     )
     SELECT ${exhaustionEvent("made", true, "$4", "made.at")} AS event FROM made`,
    orgId,
    day,
    pool,
    JSON.stringify(actor),
  );
  return rows.length > 0;
}

/** Takes back what was found before. @returns whether this one did */
export async function clearExhaustion(
  database: Database,
  orgId: string,
  stamp: string,
  actor: Actor,
): Promise<boolean> {
  const rows = await database.query(
    `WITH gone AS (
       DELETE FROM billing.exhaustions WHERE org_id = $1::uuid AND at = $2::text::timestamptz RETURNING *
     )
     SELECT ${exhaustionEvent("gone", false, "$3", "clock_timestamp()")} AS event FROM gone`,
    orgId,
    stamp,
    JSON.stringify(actor),
  );
  return rows.length > 0;
}

function exhaustionEvent(of: string, exhausted: boolean, actor: string, at: string): string {
  return `organization.append_event(${of}.org_id, 'quota_changed', ${actor}::jsonb,
    jsonb_build_object('pool_exhausted', ${exhausted}, 'pool', ${of}.pool, 'month', ${of}.month), ${at})`;
}

/**
 * Some of the sandboxes of these organizations that run, or are to; others each time, so that none is in the way.
 * An organization's sandboxes are looked through only where its places say that any do.
 */
export function listRunning(
  database: Database,
  orgIds: readonly string[],
  most: number,
): Promise<{ orgId: string; sandboxId: string }[]> {
  return database.query(
    `SELECT s.org_id AS "orgId", s.id AS "sandboxId"
     FROM sandbox.places p JOIN sandbox.sandboxes s ON s.org_id = p.org_id
     WHERE p.org_id = ANY($1::uuid[]) AND p.ephemeral_running + p.persistent_running > 0
       AND s.destroyed_at IS NULL AND s.status IN ('starting', 'running')
     ORDER BY random() LIMIT $2::int`,
    orgIds,
    most,
  );
}
