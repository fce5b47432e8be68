import type { Database } from "../../../prisma/database.ts";
import { QUEUED } from "./queue.ts";

/** Starts that no engine has. */
export interface QueueCensus {
  /** Not looked at yet. */
  new: number;
  /** For room. */
  waiting: number;
  /** Seconds; 0 where there is none. */
  oldest: number;
}

export async function countQueue(database: Database): Promise<QueueCensus> {
  const [row] = await database.query<QueueCensus>(
    `SELECT count(*) FILTER (WHERE waiting_since IS NULL)::int AS new,
            count(*) FILTER (WHERE waiting_since IS NOT NULL)::int AS waiting,
            greatest(0, coalesce(extract(epoch FROM clock_timestamp() - min(admitted_at)), 0))::float8 AS oldest
     FROM sandbox.runs WHERE ${QUEUED}`,
  );
  return row ?? { new: 0, waiting: 0, oldest: 0 };
}

/** How many sandboxes there are of each status; `destroyed` are those of which an engine may still hold something. */
export function countSandboxes(database: Database): Promise<{ status: string; count: number }[]> {
  return database.query(
    `SELECT status, count(*)::int AS count
     FROM (SELECT CASE WHEN destroyed_at IS NULL THEN status ELSE 'destroyed' END AS status FROM sandbox.sandboxes) all_of_them
     GROUP BY status`,
  );
}

/** Seconds since the volume was measured that was measured longest ago; undefined: none was. */
export async function oldestMeasurement(database: Database): Promise<number | undefined> {
  const [row] = await database.query<{ secs: number }>(
    `SELECT greatest(0, extract(epoch FROM clock_timestamp() - measured_at))::float8 AS secs FROM sandbox.volumes
     WHERE deleted_at IS NULL AND measured_at IS NOT NULL ORDER BY measured_at NULLS FIRST LIMIT 1`,
  );
  return row?.secs;
}
