import type { Database } from "../../../prisma/database.ts";
import type { Capacity, RunKey } from "../engines/engine.ts";

/** A start that no engine has; the words of the indexes runs_new, runs_waiting and runs_queued. */
export const QUEUED = "phase = 'starting' AND desired = 'running' AND placed_at IS NULL";
/** A start that an engine has; runs_placed. */
export const PLACED = "phase = 'starting' AND desired = 'running' AND placed_at IS NOT NULL";
const NEW = `${QUEUED} AND waiting_since IS NULL`;
const WAITING = `${QUEUED} AND waiting_since IS NOT NULL`;

/** After this a start that waits for room holds the room that appears. */
const OVERDUE = "interval '1 minute'";

/** A start that no engine has yet, as far as its placement is concerned. */
export interface QueuedRun extends RunKey {
  orgId: string;
  vcpus: number;
  memoryMib: number;
  /** It has been told that it waits for room. */
  waiting: boolean;
  /** For so long that it holds room. */
  overdue: boolean;
}

export interface QueueQuery {
  /** Sandboxes that are being worked on. */
  busy: readonly string[];
  /** Room that is left. */
  free: Capacity;
  /** Most of one organization, and of each kind. */
  each: number;
  /** Organizations that had their turn, least recently first. */
  served: readonly string[];
}

// An organization after the other by its first entry: however many wait, only their heads are read.
const orgsOf = (name: string, condition: string) => `
${name} (org_id) AS (
  (SELECT org_id FROM sandbox.runs WHERE ${condition} ORDER BY org_id LIMIT 1)
  UNION ALL
  SELECT (SELECT r.org_id FROM sandbox.runs r WHERE ${condition} AND r.org_id > o.org_id ORDER BY r.org_id LIMIT 1)
  FROM ${name} o WHERE o.org_id IS NOT NULL
)`;

const headsOf = (orgs: string, condition: string) => `
SELECT head.* FROM ${orgs} o, LATERAL (
  SELECT sandbox_id, generation, org_id, vcpus, memory_mib, admitted_at, waiting_since
  FROM sandbox.runs WHERE ${condition} AND org_id = o.org_id AND sandbox_id <> ALL($1::uuid[])
  ORDER BY admitted_at LIMIT $4::int
) head WHERE o.org_id IS NOT NULL`;

const FITS = "vcpus <= $2::int AND memory_mib <= $3::int";

const QUEUE = `
WITH RECURSIVE ${orgsOf("new_orgs", NEW)}, ${orgsOf("waiting_orgs", WAITING)},
head AS (
  ${headsOf("new_orgs", NEW)}
  UNION ALL ${headsOf("waiting_orgs", `${WAITING} AND (${FITS} OR waiting_since <= now() - ${OVERDUE})`)}
)
SELECT sandbox_id AS "sandboxId", generation, org_id AS "orgId", vcpus, memory_mib AS "memoryMib",
       waiting_since IS NOT NULL AS waiting, coalesce(waiting_since <= now() - ${OVERDUE}, false) AS overdue
FROM (SELECT *, row_number() OVER (PARTITION BY org_id ORDER BY admitted_at) AS turn FROM head) h
ORDER BY turn, array_position($5::uuid[], org_id) NULLS FIRST, admitted_at
LIMIT 4 * $4::int`;

/**
 * The heads of the queue, round-robin over organizations and oldest first within one: new starts, and of those
 * that wait for room the ones that fit or hold it.
 */
export async function listQueue(database: Database, query: QueueQuery): Promise<QueuedRun[]> {
  const { busy, free, each, served } = query;
  return database.query<QueuedRun>(
    QUEUE,
    busy,
    Math.floor(Math.max(0, Math.min(free.vcpus, INT_MAX))),
    Math.floor(Math.max(0, Math.min(free.memoryMib, INT_MAX))),
    each,
    served,
  );
}

const INT_MAX = 2 ** 31 - 1;

/** What open runs take that an engine has, or is given now. */
export async function sumPlaced(
  database: Database,
  starting: readonly string[],
): Promise<Capacity> {
  const [row] = await database.query<Capacity>(
    `SELECT coalesce(sum(vcpus), 0)::float8 AS vcpus, coalesce(sum(memory_mib), 0)::float8 AS "memoryMib"
     FROM (
       SELECT vcpus, memory_mib FROM sandbox.runs WHERE closed_at IS NULL AND placed_at IS NOT NULL
       UNION ALL
       SELECT vcpus, memory_mib FROM sandbox.runs
       WHERE closed_at IS NULL AND placed_at IS NULL AND sandbox_id = ANY($1::uuid[])
     ) taken`,
    starting,
  );
  return row ?? { vcpus: 0, memoryMib: 0 };
}

/** Starts that the engine has. */
export async function listPlaced(
  database: Database,
  limit: number,
  busy: readonly string[],
): Promise<RunKey[]> {
  return database.query<RunKey>(
    `SELECT sandbox_id AS "sandboxId", generation FROM sandbox.runs
     WHERE ${PLACED} AND sandbox_id <> ALL($2::uuid[]) ORDER BY placed_at LIMIT $1::int`,
    limit,
    busy,
  );
}

/** Starts that were not placed in time, and whether they were told to wait for room. */
export async function listExpired(
  database: Database,
  limit: number,
  busy: readonly string[],
  queueTimeoutSecs: number,
): Promise<(RunKey & { waiting: boolean })[]> {
  return database.query<RunKey & { waiting: boolean }>(
    `SELECT sandbox_id AS "sandboxId", generation, waiting_since IS NOT NULL AS waiting FROM sandbox.runs
     WHERE ${QUEUED} AND admitted_at <= now() - $3::int * interval '1 second' AND sandbox_id <> ALL($2::uuid[])
     ORDER BY admitted_at LIMIT $1::int`,
    limit,
    busy,
    queueTimeoutSecs,
  );
}
