import type { Database } from "../../../prisma/database.ts";
import type { Change, Lease, Status } from "../domain/sandbox.ts";
import { lockTarget, lockTargetNext, sandboxEvent } from "./fragments.ts";
import { lockPlaces, movePlaces } from "./quotas.ts";

// An engine's report only moves a run forward: starting < running < ended. One about another
// generation, one that comes late, and one of a leader that has been replaced match no row and change nothing.

/** Whose run, and who says so. */
export interface Reported {
  sandboxId: string;
  generation: number;
  /** Null: not asked for. */
  lease: Lease | null;
}

interface ChangeRow {
  id: string;
  status: Status;
  generation: number;
  destroyed: boolean;
}

/** `$1` to `$4` are the sandbox, the generation, and engine and epoch of the lease; then come the values. */
async function report(
  database: Database,
  sql: string,
  { sandboxId, generation, lease }: Reported,
  ...values: unknown[]
): Promise<Change | undefined> {
  const holder = [lease?.engine ?? null, lease?.epoch ?? null];
  const [row] = await database.query<ChangeRow>(sql, sandboxId, generation, ...holder, ...values);
  return row && { ...row, sandboxId: row.id };
}

function heldBy(engine: string, epoch: string): string {
  return `(${engine}::text IS NULL OR EXISTS (
    SELECT FROM orchestrator.leases l WHERE l.engine = ${engine} AND l.epoch = ${epoch}::bigint))`;
}

const REPORTED = `id = $1::uuid AND ${heldBy("$3", "$4")}`;
const TARGET = lockTarget(REPORTED);
const OPEN_RUN = "r.sandbox_id = t.id AND r.generation = $2::int AND r.closed_at IS NULL";
const CHANGED = "id, status, generation, destroyed_at IS NOT NULL AS destroyed";
// Refers to the locked row, so the clock is read after the lock is had.
const NOW = "LATERAL (SELECT greatest(clock_timestamp(), t.created_at) AS now) at";
// What the engine says, within what can be true here.
const UP = "least(greatest($5::timestamptz, r.admitted_at, r.placed_at), at.now)";
const OVER = "least(greatest($5::timestamptz, r.running_at), at.now)";
const LIMIT = "sandbox.limit_interval(r.limit_secs)";
const ENGINE = `'{"kind": "system", "code": "engine", "label": "Engine"}'`;

/** Why a start is not placed. */
export type Waiting = "scheduling" | "insufficient_capacity";

/** `reason` null: placed. Only a start that is still wanted is. Writes no event: the status stays `starting`. */
export function reportPlacement(
  database: Database,
  of: Reported,
  reason: Waiting | null,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${TARGET},
     run AS (
       UPDATE sandbox.runs r
       SET placed_at = CASE WHEN $5::text IS NULL THEN coalesce(r.placed_at, greatest(at.now, r.admitted_at)) END,
           waiting_since = CASE WHEN $5::text = 'insufficient_capacity' THEN coalesce(r.waiting_since, at.now)
                                WHEN $5::text IS NULL THEN r.waiting_since END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN} AND r.phase = 'starting' AND r.desired = 'running'
       RETURNING r.sandbox_id
     )
     UPDATE sandbox.sandboxes s SET status_reason = CASE WHEN s.status = 'starting' THEN $5::text END
     FROM run WHERE s.id = run.sandbox_id
     RETURNING ${CHANGED.replace("id,", "s.id,")}`,
    of,
    reason,
  );
}

/** The machine is up since `startedAt` by the engine's clock. */
export function reportRunning(
  database: Database,
  of: Reported,
  startedAt: Date,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${TARGET},
     run AS (
       UPDATE sandbox.runs r
       SET phase = 'running', running_at = ${UP}, placed_at = coalesce(r.placed_at, ${UP}),
           due_at = CASE WHEN r.desired = 'running' THEN ${UP} + ${LIMIT} ELSE r.due_at END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN} AND r.phase = 'starting'
       RETURNING r.sandbox_id, r.generation, r.running_at, r.desired
     ),
     moved AS (
       UPDATE sandbox.sandboxes s
       SET status = CASE WHEN s.status = 'starting' THEN 'running' ELSE s.status END,
           status_reason = NULL, started_at = run.running_at
       FROM run WHERE s.id = run.sandbox_id
       RETURNING s.*
     )
     SELECT ${CHANGED}, CASE WHEN status = 'running' AND destroyed_at IS NULL
       THEN ${sandboxEvent("sandbox_running", "moved", ENGINE, "clock_timestamp()")} END
     FROM moved`,
    of,
    startedAt.toISOString(),
  );
}

/** The workload is over since `endedAt` by the engine's clock: the idle time-out counts from there, once. */
export function reportWorkloadEnded(
  database: Database,
  of: Reported,
  endedAt: Date,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${TARGET},
     run AS (
       UPDATE sandbox.runs r
       SET workload_ended_at = ${OVER},
           due_at = CASE WHEN r.desired = 'running'
                         THEN least(r.due_at, ${OVER} + sandbox.limit_of(t.spec, 'idleTimeoutSecs')) ELSE r.due_at END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN} AND r.phase = 'running' AND r.workload_ended_at IS NULL AND NOT sandbox.idles(t.spec)
       RETURNING r.sandbox_id
     )
     SELECT ${CHANGED} FROM target WHERE id IN (SELECT sandbox_id FROM run)`,
    of,
    endedAt.toISOString(),
  );
}

/** How a run ended. */
export interface RunEnd {
  /** The engine's clock, or when it was last seen up; null where nobody saw it. */
  endedAt: Date | null;
  /** Where nobody had asked it to stop. */
  outcome: "stopped" | "failed";
  /** The outcome stands though it was asked to stop. */
  despiteStop: boolean;
  /** Who ended it, where nobody had asked it to stop; `limit`: the one that it reached. */
  by: "engine" | "engine_lost" | "limit";
  message: string;
  lingerSecs: number;
}

const ENDED_BY = `CASE WHEN r.desired = 'stopped' THEN 'engine' WHEN $9 = 'limit'
  THEN sandbox.limit_code(t.spec, r.running_at, r.workload_ended_at, r.uptime_secs) ELSE $9::text END`;
const ENDING_ACTOR = `jsonb_build_object('kind', 'system', 'code', moved.by, 'label',
  '{"engine": "Engine", "engine_lost": "Engine lost the machine", "max_duration": "Longest duration reached",
    "idle_timeout": "Idle time-out reached", "max_uptime": "Longest uptime of the plan reached"}'::jsonb ->> moved.by)`;

// A run that is to stop has given its place back, and never takes one again: then nothing is locked.
const PLACES = lockPlaces(`(
    SELECT r.org_id FROM sandbox.runs r
    WHERE r.sandbox_id = $1::uuid AND r.generation = $2::int AND r.closed_at IS NULL AND r.desired = 'running')`);

/** The machine is down. A stop that was asked for ends stopped, whatever the machine did, unless it failed. */
export function reportEnded(
  database: Database,
  of: Reported,
  end: RunEnd,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${PLACES}, ${lockTargetNext(REPORTED)},
     run AS (
       UPDATE sandbox.runs r
       SET phase = 'ended', due_at = NULL, closed_at = greatest(at.now, r.admitted_at),
           machine_ended_at = greatest(least($5::timestamptz, at.now), r.running_at, r.placed_at, r.admitted_at),
           outcome = CASE WHEN r.desired = 'stopped' AND NOT $10::boolean THEN 'stopped' ELSE $6 END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN}
       RETURNING r.sandbox_id, r.org_id, r.ephemeral, r.desired, r.outcome, r.closed_at, ${ENDED_BY} AS by
     ),
     ${movePlaces("-", "run", { held: "run.desired = 'running'" })},
     moved AS (
       UPDATE sandbox.sandboxes s
       SET status = run.outcome, status_reason = NULL, stopped_at = run.closed_at,
           last_failure_message = CASE WHEN run.outcome = 'failed' THEN $7 END,
           expires_at = CASE WHEN s.ephemeral AND s.destroyed_at IS NULL
                             THEN run.closed_at + $8::int * interval '1 second' END
       FROM run WHERE s.id = run.sandbox_id
       RETURNING s.*, run.by
     )
     SELECT ${CHANGED}, CASE WHEN destroyed_at IS NULL THEN organization.append_event(
         org_id, 'sandbox_' || status, ${ENDING_ACTOR},
         jsonb_build_object('sandbox_id', id, 'name', name, 'slug', slug) ||
           CASE WHEN status = 'failed' THEN jsonb_build_object('message', $7::text) ELSE '{}' END,
         stopped_at) END
     FROM moved`,
    of,
    end.endedAt?.toISOString() ?? null,
    end.outcome,
    end.message,
    end.lingerSecs,
    end.by,
    end.despiteStop,
  );
}

/** Nothing of a destroyed sandbox is left: its run closes, its row goes; its runs and events stay. */
export async function reportRemoved(
  database: Database,
  { sandboxId, lease }: Omit<Reported, "generation">,
): Promise<boolean> {
  const rows = await database.query<{ id: string }>(
    `WITH ${lockTarget(`id = $1::uuid AND destroyed_at IS NOT NULL AND ${heldBy("$2", "$3")}`)},
     run AS (
       UPDATE sandbox.runs r
       SET phase = 'ended', outcome = 'stopped', due_at = NULL, closed_at = greatest(at.now, r.admitted_at),
           machine_ended_at = greatest(at.now, r.admitted_at)
       FROM target t, ${NOW}
       WHERE r.sandbox_id = t.id AND r.closed_at IS NULL
     )
     DELETE FROM sandbox.sandboxes s USING target t WHERE s.id = t.id RETURNING s.id`,
    sandboxId,
    lease?.engine ?? null,
    lease?.epoch ?? null,
  );
  return rows.length > 0;
}
