import type { Database } from "../../../prisma/database.ts";
import type { AllocatedVolume, EngineSpec } from "../engines/engine.ts";
import { PLACED, QUEUED } from "./queue.ts";

/** What there is to do at all, and when there will be next. */
export interface Glance {
  destroyed: boolean;
  ends: boolean;
  /** Starts that are placed. */
  placed: boolean;
  /** Starts that are not. */
  queued: boolean;
  /** Milliseconds until the next run reaches its limit; null: none has one. */
  nextMs: number | null;
}

/** One statement, so that a look that finds nothing costs one. Each part is the first entry of an index. */
export async function glance(database: Database): Promise<Glance> {
  const [row] = await database.query<Glance>(
    `SELECT ${first("sandbox.sandboxes WHERE destroyed_at IS NOT NULL ORDER BY destroyed_at")} AS destroyed,
            ${first(`sandbox.runs WHERE ${ENDING} AND due_at <= now() ORDER BY due_at`)} AS ends,
            ${first(`sandbox.runs WHERE ${PLACED} ORDER BY placed_at`)} AS placed,
            ${first(`sandbox.runs WHERE ${QUEUED} ORDER BY admitted_at`)} AS queued,
            (SELECT (extract(epoch FROM min(due_at) - clock_timestamp()) * 1000)::float8
             FROM sandbox.runs WHERE ${ENDING} AND due_at > now()) AS "nextMs"`,
  );
  return row ?? { destroyed: false, ends: false, placed: false, queued: false, nextMs: null };
}

// EXISTS would be planned as a scan of the table where many rows are thought to match.
const first = (from: string) => `coalesce((SELECT true FROM ${from} LIMIT 1), false)`;
const ENDING = "due_at IS NOT NULL AND (desired = 'stopped' OR phase = 'running')";

/** An open run of a living sandbox that is to end now. */
export interface EndingRun {
  sandboxId: string;
  generation: number;
  /** `running`: it has reached its limit. */
  desired: "running" | "stopped";
  /** An engine has it. */
  placed: boolean;
  /** Milliseconds that are left to stop it, 0: none; null: as many as it takes. */
  stopMsLeft: number | null;
  /** Where in a trace its stop was asked for; see runtime/tracing. */
  trace: string | null;
}

export interface EndQuery {
  limit: number;
  /** Sandboxes that are being worked on. */
  busy: readonly string[];
  stopTimeoutSecs: number;
  /** Only those that can be ended without the engine: it has none of it, or the time is over. */
  withoutEngine: boolean;
}

// However many are due, only so many are sorted.
const TAKING_TURNS = 1_000;

/** Of those that are due for longest organizations take turns, each with its oldest first. */
export async function listEnds(database: Database, query: EndQuery): Promise<EndingRun[]> {
  return database.query<EndingRun>(
    `SELECT sandbox_id AS "sandboxId", generation, desired, placed_at IS NOT NULL AS placed,
            CASE WHEN desired = 'stopped' THEN ms_left END AS "stopMsLeft",
            CASE WHEN desired = 'stopped' THEN trace_context END AS trace
     FROM (
       SELECT r.*, at.ms_left FROM sandbox.runs r
       JOIN sandbox.sandboxes s ON s.id = r.sandbox_id AND s.destroyed_at IS NULL,
       LATERAL (SELECT greatest(0, extract(epoch FROM
         r.stop_admitted_at + $3::int * interval '1 second' - now()) * 1000)::int AS ms_left) at
       WHERE ${ENDING} AND due_at <= now() AND sandbox_id <> ALL($2::uuid[])
         AND (NOT $4::boolean OR r.placed_at IS NULL OR (desired = 'stopped' AND at.ms_left = 0))
       ORDER BY due_at LIMIT ${TAKING_TURNS}
     ) due
     ORDER BY row_number() OVER (PARTITION BY org_id ORDER BY due_at), due_at LIMIT $1::int`,
    query.limit,
    query.busy,
    query.stopTimeoutSecs,
    query.withoutEngine,
  );
}

/** A stored spec as far as this service reads it. */
export type StoredSpec = EngineSpec & { registry: { mode: "auto" | "anonymous" | "inline" } };

/** A start with everything that the engine needs. */
export interface StartingRun {
  sandboxId: string;
  orgId: string;
  name: string;
  generation: number;
  /** Milliseconds that are left to bring the machine up; 0: it is too late. */
  startMsLeft: number;
  spec: StoredSpec;
  /** By name; "" is the host volume. */
  volumes: Record<string, AllocatedVolume>;
  sealed: Uint8Array | null;
  /** Where in a trace it was asked for; see runtime/tracing. */
  trace: string | null;
}

// One that holds more than it may, or all of its organization together, is full.
const VOLUMES = `coalesce((
  SELECT jsonb_object_agg(m.name, jsonb_build_object('volumeId', v.id,
    'full', v.over_capacity_at IS NOT NULL OR g.over_limit_at IS NOT NULL))
  FROM sandbox.mounted_volumes m JOIN sandbox.volumes v ON v.id = m.volume_id AND v.deleted_at IS NULL
  LEFT JOIN sandbox.storage g ON g.org_id = v.org_id
  WHERE m.sandbox_id = s.id), '{}')`;

/** These sandboxes' starts, as far as they are still wanted, in that order. */
export async function readStarts(
  database: Database,
  ids: readonly string[],
  startTimeoutSecs: number,
): Promise<StartingRun[]> {
  return database.query<StartingRun>(
    `SELECT r.sandbox_id AS "sandboxId", r.org_id AS "orgId", s.name, r.generation,
            greatest(0, extract(epoch FROM coalesce(r.placed_at, at.now) + $2::int * interval '1 second' - at.now) * 1000)::int AS "startMsLeft",
            s.spec, ${VOLUMES} AS volumes, sealed.sealed, r.trace_context AS trace
     FROM unnest($1::uuid[]) WITH ORDINALITY AS given (id, place)
     JOIN sandbox.runs r ON r.sandbox_id = given.id AND r.closed_at IS NULL AND r.phase = 'starting' AND r.desired = 'running'
     JOIN sandbox.sandboxes s ON s.id = r.sandbox_id AND s.destroyed_at IS NULL
     LEFT JOIN sandbox.sealed_specs sealed ON sealed.sandbox_id = s.id,
     LATERAL (SELECT now() AS now) at
     ORDER BY given.place`,
    ids,
    startTimeoutSecs,
  );
}

/** Destroyed sandboxes of which an engine may still hold something, and whether they have volumes. */
export async function listDestroyed(
  database: Database,
  limit: number,
  busy: readonly string[],
): Promise<{ id: string; mounts: boolean }[]> {
  return database.query(
    `SELECT id, EXISTS (SELECT FROM sandbox.mounted_volumes m WHERE m.sandbox_id = s.id) AS mounts
     FROM sandbox.sandboxes s
     WHERE destroyed_at IS NOT NULL AND id <> ALL($2::uuid[]) ORDER BY destroyed_at LIMIT $1::int`,
    limit,
    busy,
  );
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
