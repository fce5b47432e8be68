import type { Database } from "../../../prisma/database.ts";
import { billed, DAY_MS, dateOf, daysOf } from "./fragments.ts";

// In one statement a run is taken, split and added: all of it, once, whatever crashes. The days are locked in one
// order, so that two processes never wait for each other.
const ROLL_UP = `
WITH taken AS MATERIALIZED (SELECT * FROM sandbox.take_closed_runs($1::int)),
kept AS (
  INSERT INTO billing.run_days (org_id, day, sandbox_id, generation, start_ms, end_ms, vcpus, memory_mib, disk_mib)
  SELECT t.org_id, ${dateOf("d.day")}, t.sandbox_id, t.generation, start.ms, start.ms + d.ms,
         t.vcpus, t.memory_mib, coalesce(t.disk_size_mib, 0)
  FROM taken t, LATERAL ${billed("t", "NULL")} b, LATERAL ${daysOf("b.since", "b.until")} d,
       LATERAL (SELECT greatest(b.since - d.day * ${DAY_MS}, 0) AS ms) start
  RETURNING *
),
added AS (
  INSERT INTO billing.daily AS total (org_id, day, vcpu, memory, disk)
  SELECT org_id, day, sum(vcpus * ms), sum(memory_mib * ms), sum(disk_mib * ms)
  FROM kept, LATERAL (SELECT (end_ms - start_ms)::bigint AS ms) c
  GROUP BY org_id, day ORDER BY org_id, day
  ON CONFLICT (org_id, day) DO UPDATE
    SET vcpu = total.vcpu + excluded.vcpu, memory = total.memory + excluded.memory, disk = total.disk + excluded.disk
)
SELECT count(*)::int AS taken FROM taken`;

/** Rolls up closed runs, the oldest first. @returns how many were taken; fewer than `most`: there are no more */
export async function rollUp(database: Database, most: number): Promise<number> {
  const [row] = await database.query<{ taken: number }>(ROLL_UP, most);
  return row?.taken ?? 0;
}

/** Seconds since the end of the oldest run that has ended and is not taken yet; 0: there is none. */
export async function meteringLag(database: Database): Promise<number> {
  const [row] = await database.query<{ secs: number }>(
    `SELECT greatest(0, extract(epoch FROM clock_timestamp() - closed_at))::float8 AS secs FROM sandbox.runs
     WHERE closed_at IS NOT NULL AND metered_at IS NULL ORDER BY closed_at LIMIT 1`,
  );
  return row?.secs ?? 0;
}
