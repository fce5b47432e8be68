import type { Database } from "../../../prisma/database.ts";
import type { Change, Status } from "../domain/sandbox.ts";
import { lockTarget, sandboxEvent } from "./fragments.ts";

// An engine's report only moves a run forward: starting < running < ended. One about another
// generation, or one that comes late, matches no row and changes nothing.

interface ChangeRow {
  id: string;
  status: Status;
  generation: number;
  destroyed: boolean;
}

async function report(
  database: Database,
  sql: string,
  ...values: unknown[]
): Promise<Change | undefined> {
  const [row] = await database.query<ChangeRow>(sql, ...values);
  return row && { ...row, sandboxId: row.id };
}

const TARGET = lockTarget("id = $1::uuid");
const OPEN_RUN = "r.sandbox_id = t.id AND r.generation = $2::int AND r.closed_at IS NULL";
const CHANGED = "id, status, generation, destroyed_at IS NOT NULL AS destroyed";
// Refers to the locked row, so the clock is read after the lock is had.
const NOW = "LATERAL (SELECT greatest(clock_timestamp(), t.created_at) AS now) at";
// What the engine says, within what can be true here.
const UP = "least(greatest($3::timestamptz, r.admitted_at, r.placed_at), at.now)";
// Three hundred years stand for longer limits, which no timestamp can hold.
const LIMIT = "least(r.limit_secs, 10000000000) * interval '1 second'";
const SYSTEM = `'{"kind": "system", "code": "engine", "label": "Engine"}'`;

/** `reason` null: placed; else why it is not. Writes no event: the status stays `starting`. */
export function reportPlacement(
  database: Database,
  sandboxId: string,
  generation: number,
  reason: "insufficient_capacity" | null,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${TARGET},
     run AS (
       UPDATE sandbox.runs r
       SET placed_at = CASE WHEN $3::text IS NULL THEN coalesce(r.placed_at, greatest(at.now, r.admitted_at)) END,
           due_at = CASE WHEN $3::text IS NULL OR r.desired = 'stopped' THEN r.due_at ELSE at.now + interval '1 second' END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN} AND r.phase = 'starting'
       RETURNING r.sandbox_id
     )
     UPDATE sandbox.sandboxes s SET status_reason = CASE WHEN s.status = 'starting' THEN $3::text END
     FROM run WHERE s.id = run.sandbox_id
     RETURNING ${CHANGED.replace("id,", "s.id,")}`,
    sandboxId,
    generation,
    reason,
  );
}

/** The machine is up since `startedAt` by the engine's clock. */
export function reportRunning(
  database: Database,
  sandboxId: string,
  generation: number,
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
       THEN ${sandboxEvent("sandbox_running", "moved", SYSTEM, "clock_timestamp()")} END
     FROM moved`,
    sandboxId,
    generation,
    startedAt.toISOString(),
  );
}

/** How a run ended. */
export interface RunEnd {
  /** The engine's clock; null where nobody saw it. */
  endedAt: Date | null;
  /** Where nobody had asked it to stop. */
  outcome: "stopped" | "failed";
  message: string;
  lingerSecs: number;
}

/** The machine is down. A stop that was asked for ends stopped, whatever the machine did. */
export function reportEnded(
  database: Database,
  sandboxId: string,
  generation: number,
  end: RunEnd,
): Promise<Change | undefined> {
  return report(
    database,
    `WITH ${TARGET},
     run AS (
       UPDATE sandbox.runs r
       SET phase = 'ended', due_at = NULL, closed_at = greatest(at.now, r.admitted_at),
           machine_ended_at = greatest(least($3::timestamptz, at.now), r.running_at, r.admitted_at),
           outcome = CASE WHEN r.desired = 'stopped' THEN 'stopped' ELSE $4 END
       FROM target t, ${NOW}
       WHERE ${OPEN_RUN}
       RETURNING r.sandbox_id, r.outcome, r.closed_at
     ),
     moved AS (
       UPDATE sandbox.sandboxes s
       SET status = run.outcome, status_reason = NULL, stopped_at = run.closed_at,
           last_failure_message = CASE WHEN run.outcome = 'failed' THEN $5 END,
           expires_at = CASE WHEN s.ephemeral AND s.destroyed_at IS NULL
                             THEN run.closed_at + $6::int * interval '1 second' END
       FROM run WHERE s.id = run.sandbox_id
       RETURNING s.*
     )
     SELECT ${CHANGED}, CASE WHEN destroyed_at IS NULL THEN organization.append_event(
         org_id, 'sandbox_' || status, ${SYSTEM}::jsonb,
         jsonb_build_object('sandbox_id', id, 'name', name, 'slug', slug) ||
           CASE WHEN status = 'failed' THEN jsonb_build_object('message', $5::text) ELSE '{}' END,
         stopped_at) END
     FROM moved`,
    sandboxId,
    generation,
    end.endedAt?.toISOString() ?? null,
    end.outcome,
    end.message,
    end.lingerSecs,
  );
}

/** Nothing of a destroyed sandbox is left: its run closes, its row goes; its runs and events stay. */
export async function reportRemoved(database: Database, sandboxId: string): Promise<boolean> {
  const rows = await database.query<{ id: string }>(
    `WITH ${lockTarget("id = $1::uuid AND destroyed_at IS NOT NULL")},
     run AS (
       UPDATE sandbox.runs r
       SET phase = 'ended', outcome = 'stopped', due_at = NULL, closed_at = greatest(at.now, r.admitted_at),
           machine_ended_at = greatest(at.now, r.admitted_at)
       FROM target t, ${NOW}
       WHERE r.sandbox_id = t.id AND r.closed_at IS NULL
     )
     DELETE FROM sandbox.sandboxes s USING target t WHERE s.id = t.id RETURNING s.id`,
    sandboxId,
  );
  return rows.length > 0;
}
