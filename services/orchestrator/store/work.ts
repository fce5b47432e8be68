import type { Database } from "../../../prisma/database.ts";
import type { EngineSpec, Instance } from "../engines/engine.ts";

/** A stored spec as far as this service reads it. */
export type StoredSpec = EngineSpec & { registry: { mode: "auto" | "anonymous" | "inline" } };

/** An open run that wants something done now. */
export interface DueRun {
  sandboxId: string;
  orgId: string;
  name: string;
  generation: number;
  desired: "running" | "stopped";
  phase: "starting" | "running";
  /** It waits for room in an engine. */
  waiting: boolean;
  /** It waited for longer than it may. */
  queueExpired: boolean;
  /** Milliseconds that are left to bring the machine up; 0: it is too late. */
  startMsLeft: number;
  spec: StoredSpec;
  sealed: Uint8Array | null;
  /** Some machine of the sandbox has been up. */
  hasRun: boolean;
}

export interface DueQuery {
  /** Starts, or what is to end: stops and runs at their limit. */
  kind: "start" | "end";
  limit: number;
  /** Sandboxes that are being worked on. */
  busy: readonly string[];
  queueTimeoutSecs: number;
  startTimeoutSecs: number;
}

/** Open runs of living sandboxes that are due: organizations take turns, each with its oldest first. */
export async function listDue(database: Database, query: DueQuery): Promise<DueRun[]> {
  return database.query<DueRun>(
    `SELECT r.sandbox_id AS "sandboxId", r.org_id AS "orgId", s.name, r.generation, r.desired, r.phase,
            coalesce(s.status_reason = 'insufficient_capacity', false) AS waiting,
            r.placed_at IS NULL AND at.now > r.admitted_at + $3::int * interval '1 second' AS "queueExpired",
            greatest(0, extract(epoch FROM coalesce(r.placed_at, at.now) + $4::int * interval '1 second' - at.now) * 1000)::int AS "startMsLeft",
            s.spec, sealed.sealed, s.started_at IS NOT NULL AS "hasRun"
     FROM (
       SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY admitted_at) AS turn
       FROM sandbox.runs
       WHERE due_at <= now() AND sandbox_id <> ALL($2::uuid[])
         AND (desired = 'running' AND phase = 'starting') = $5::boolean
     ) r
     JOIN sandbox.sandboxes s ON s.id = r.sandbox_id AND s.destroyed_at IS NULL
     LEFT JOIN sandbox.sealed_specs sealed ON sealed.sandbox_id = s.id,
     LATERAL (SELECT now() AS now) at
     ORDER BY r.turn, r.due_at LIMIT $1::int`,
    query.limit,
    query.busy,
    query.queueTimeoutSecs,
    query.startTimeoutSecs,
    query.kind === "start",
  );
}

/** Destroyed sandboxes of which an engine may still hold something. */
export async function listDestroyed(
  database: Database,
  limit: number,
  busy: readonly string[],
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `SELECT id FROM sandbox.sandboxes
     WHERE destroyed_at IS NOT NULL AND id <> ALL($2::uuid[]) ORDER BY destroyed_at LIMIT $1::int`,
    limit,
    busy,
  );
  return rows.map(({ id }) => id);
}

/** Which of these starts nobody wants any more. */
export async function listUnwanted(
  database: Database,
  starting: readonly string[],
): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `SELECT wanted.id FROM unnest($1::uuid[]) AS wanted (id)
     WHERE NOT EXISTS (
       SELECT FROM sandbox.runs r JOIN sandbox.sandboxes s ON s.id = r.sandbox_id
       WHERE r.sandbox_id = wanted.id AND r.closed_at IS NULL AND r.desired = 'running' AND s.destroyed_at IS NULL)`,
    starting,
  );
  return rows.map(({ id }) => id);
}

/** An open run, as it is compared with what the engine lists. */
export interface OpenRun {
  sandboxId: string;
  generation: number;
  phase: "starting" | "running";
  runningAt: Date | null;
  /** It is to be stopped, or has reached its limit. */
  due: boolean;
}

export async function listOpen(database: Database): Promise<OpenRun[]> {
  return database.query<OpenRun>(
    `SELECT sandbox_id AS "sandboxId", generation, phase, running_at AS "runningAt",
            coalesce(due_at <= now(), false) AS due
     FROM sandbox.runs WHERE closed_at IS NULL`,
  );
}

/** Whether a run is open. */
export async function isOpen(
  database: Database,
  sandboxId: string,
  generation: number,
): Promise<boolean> {
  const rows = await database.query(
    "SELECT generation FROM sandbox.runs WHERE sandbox_id = $1::uuid AND generation = $2::int AND closed_at IS NULL",
    sandboxId,
    generation,
  );
  return rows.length > 0;
}

/** Which of these sandboxes do not exist, not even as destroyed. */
export async function listUnknown(database: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `SELECT given.id FROM unnest($1::uuid[]) AS given (id)
     WHERE NOT EXISTS (SELECT FROM sandbox.sandboxes s WHERE s.id = given.id)`,
    ids,
  );
  return rows.map(({ id }) => id);
}

/** The machines that the database believes to be up, for an engine that keeps them in memory only. */
export async function listBelieved(database: Database): Promise<Instance[]> {
  const open = await listOpen(database);
  return open
    .filter(({ phase }) => phase === "running")
    .map(({ sandboxId, generation, runningAt }) => ({
      sandboxId,
      generation,
      state: "running",
      startedAt: runningAt,
      endedAt: null,
      exitCode: null,
      outOfMemory: false,
      workloadEndedAt: null,
    }));
}
