import type { Database } from "../../../prisma/database.ts";
import { DAY_MS } from "../domain/calendar.ts";
import { type Metric, NO_USE, type Use } from "../domain/metrics.ts";
import { dateOf, dayOf, daysOf, LIVE, runDayMs } from "./fragments.ts";

/** Milliseconds since 1970; everything before `until`. */
export interface Span {
  since: number;
  until: number;
}

/** What was used on one day in a part of a window. */
export interface DayUse {
  part: "before" | "within";
  day: number;
  use: Use;
}

/** The database's clock, which also wrote the times of runs; milliseconds since 1970. */
export async function now(database: Database): Promise<number> {
  const [row] = await database.query<{ ms: number }>(
    "SELECT billing.ms(clock_timestamp())::float8 AS ms",
  );
  return row?.ms ?? Date.now();
}

// One statement, so one snapshot: a run is in the roll-ups or among the live ones, never in both or in neither.
// Each LATERAL that sums is a look-up of its own by index, and the limits tell the planner how few there are.
const SUM_RUNS = `
WITH part AS MATERIALIZED (
  SELECT * FROM jsonb_to_recordset($3::jsonb)
    AS p (part text, since bigint, until bigint, first_day int, end_day int, edges int[]) LIMIT 2
),
${LIVE},
used AS (
  SELECT p.part, ${dayOf("d.day")} AS day, d.vcpu, d.memory, d.disk
  FROM part p, LATERAL (
    SELECT * FROM billing.daily d
    WHERE d.org_id = $1::uuid AND d.day >= ${dateOf("p.first_day")} AND d.day < ${dateOf("p.end_day")}
    OFFSET 0
  ) d
  UNION ALL
  SELECT p.part, edge.day, s.vcpu, s.memory, s.disk
  FROM part p, LATERAL (SELECT day FROM unnest(p.edges) AS e (day) LIMIT 2) edge, LATERAL (
    SELECT sum(r.vcpus * c.ms) AS vcpu, sum(r.memory_mib * c.ms) AS memory, sum(r.disk_mib * c.ms) AS disk
    FROM billing.run_days r, LATERAL (SELECT ${runDayMs("r", "p.since", "p.until")} AS ms) c
    WHERE r.org_id = $1::uuid AND r.day = ${dateOf("edge.day")}
  ) s WHERE s.vcpu IS NOT NULL
  UNION ALL
  SELECT p.part, d.day, sum(l.vcpus * d.ms), sum(l.memory_mib * d.ms), sum(l.disk_mib * d.ms)
  FROM part p, live l, LATERAL ${daysOf("greatest(l.since, p.since)", "least(l.until, p.until)")} d
  GROUP BY p.part, d.day
)
SELECT part, day::int, sum(vcpu)::text AS vcpu, sum(memory)::text AS memory, sum(disk)::text AS disk
FROM used GROUP BY part, day
HAVING sum(vcpu) > 0 OR sum(memory) > 0 OR sum(disk) > 0`;

/** The statement that sums what an organization's runs used, and its values. */
export function sumRunsStatement(
  orgId: string,
  now: number,
  parts: Record<DayUse["part"], Span>,
): [sql: string, ...values: unknown[]] {
  const given = [partOf("before", parts.before), partOf("within", parts.within)];
  return [SUM_RUNS, orgId, now, JSON.stringify(given)];
}

/** What an organization's runs used, by day, before a window and within it; in no order. Open runs count up to `now`. */
export async function sumRuns(
  database: Database,
  ...asked: Parameters<typeof sumRunsStatement>
): Promise<DayUse[]> {
  const rows = await database.query<
    { part: DayUse["part"]; day: number } & Record<Exclude<Metric, "storage">, string>
  >(...sumRunsStatement(...asked));
  return rows.map(({ part, day, vcpu, memory, disk }) => ({
    part,
    day,
    use: { ...NO_USE, vcpu: BigInt(vcpu), memory: BigInt(memory), disk: BigInt(disk) },
  }));
}

/** Which days a span covers wholly, from `first_day` to below `end_day`, and which in part. */
function partOf(part: DayUse["part"], { since, until }: Span) {
  const [first_day, end_day] = [Math.ceil(since / DAY_MS), Math.floor(until / DAY_MS)];
  const edges = since < until ? new Set<number>() : undefined;
  if (since % DAY_MS !== 0) edges?.add(first_day - 1);
  if (until % DAY_MS !== 0) edges?.add(end_day);
  return { part, since, until, first_day, end_day, edges: [...(edges ?? [])] };
}
