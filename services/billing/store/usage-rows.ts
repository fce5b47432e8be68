import type { Database } from "../../../prisma/database.ts";
import { DAY_MS } from "../domain/calendar.ts";
import type { SandboxDay } from "../domain/list-usage.ts";
import { dateOf, dayOf, daysOf, LIVE, runDayMs } from "./fragments.ts";
import type { Span } from "./use.ts";

interface SandboxDayRow {
  sandboxId: string;
  day: number;
  vcpu: string;
  memory: string;
  disk: string;
  name: string | null;
  slug: string | null;
}

const SANDBOX_DAYS = `
WITH ${LIVE},
span AS (SELECT $3::float8::bigint AS since, $4::float8::bigint AS until),
used AS (
  SELECT r.sandbox_id, ${dayOf("r.day")}::bigint AS day, r.vcpus, r.memory_mib, r.disk_mib, c.ms
  FROM span, billing.run_days r, LATERAL (SELECT ${runDayMs("r", "span.since", "span.until")} AS ms) c
  WHERE r.org_id = $1::uuid AND r.day >= ${dateOf("$5::int")} AND r.day <= ${dateOf("$6::int")}
  UNION ALL
  SELECT l.sandbox_id, d.day, l.vcpus, l.memory_mib, l.disk_mib, d.ms
  FROM span, live l, LATERAL ${daysOf("greatest(l.since, span.since)", "least(l.until, span.until)")} d
)
SELECT u.*, s.name, s.slug FROM (
  SELECT sandbox_id AS "sandboxId", day::int, sum(vcpus * ms)::text AS vcpu, sum(memory_mib * ms)::text AS memory,
         sum(disk_mib * ms)::text AS disk
  FROM used WHERE ms > 0 GROUP BY sandbox_id, used.day
) u LEFT JOIN sandbox.sandboxes s ON s.id = u."sandboxId" AND s.org_id = $1::uuid AND s.destroyed_at IS NULL
ORDER BY u.day, u."sandboxId"`;

/** What each sandbox used on each day of a span, by day, then by sandbox. */
export async function listSandboxDays(
  database: Database,
  orgId: string,
  now: number,
  { since, until }: Span,
): Promise<SandboxDay[]> {
  const rows = await database.query<SandboxDayRow>(
    SANDBOX_DAYS,
    orgId,
    now,
    since,
    until,
    Math.floor(since / DAY_MS),
    Math.floor(until / DAY_MS),
  );
  return rows.map(({ sandboxId, day, vcpu, memory, disk, name, slug }) => ({
    sandboxId,
    day,
    vcpu: BigInt(vcpu),
    memory: BigInt(memory),
    disk: BigInt(disk),
    identity: name !== null && slug !== null ? { name, slug } : undefined,
  }));
}
