import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { traceText } from "../../../runtime/tracing/spans.ts";
import type { Memory } from "../domain/idempotency.ts";
import { allowedFrom, HOLDS_COMPUTE, HOLDS_PLACE } from "../domain/lifecycle.ts";
import type { Sandbox, SandboxKey } from "../domain/sandbox.ts";
import {
  admitRun,
  keyCondition,
  keyValue,
  LEASE,
  lockTargetNext,
  SEES_RUN,
  sandboxEvent,
} from "./fragments.ts";
import { memoryValues, remember } from "./idempotency.ts";
import { holdsVolumes } from "./mounted-volumes.ts";
import { isWithinSize, limitsOf, lockPlaces, mayRun, movePlaces } from "./quotas.ts";
import { columns, type SandboxRow, toSandbox } from "./rows.ts";

/**
 * Each returns the sandbox as changed, or undefined where state, lease, quota or absence refused the change,
 * or where it was under way with another start.
 * @throws what `isOnRecord` knows
 */
type Verb = (
  database: Database,
  orgId: string,
  key: SandboxKey,
  actor: Actor,
  memory?: Memory,
) => Promise<Sandbox | undefined>;

/** `$1` to `$6` are the organization, the id or name, the actor, the memory's key and hash, and what it is a part of. */
function verb(sqlFor: (condition: string) => string, ...statuses: readonly string[][]): Verb {
  return async (database, orgId, key, actor, memory) => {
    const [row] = await database.query<SandboxRow>(
      sqlFor(keyCondition(key)),
      orgId,
      keyValue(key),
      JSON.stringify(actor),
      ...memoryValues(memory),
      traceText(),
      ...statuses,
    );
    return row && toSandbox(row);
  };
}

const PLACES = lockPlaces("$1::uuid");
const remembered = (action: string, of: string) =>
  remember({ kind: "sandbox", verb: action }, of, "$4", "$5");

/** Admits a start: state, run, place, event and queue entry in one statement. */
export const startSandbox = verb(
  (condition) => `
WITH ${LEASE}, ${limitsOf("$1::uuid")}, ${PLACES}, ${lockTargetNext(condition)},
admitted AS MATERIALIZED (
  SELECT t.* FROM target t, place p, lease l
  WHERE t.status = ANY($7::text[]) AND NOT (t.ephemeral AND t.generation > 0)
    AND l.alive AND t.requires <@ l.features AND ${isWithinSize("t.spec")} AND ${holdsVolumes("t")}
    AND ${mayRun(
      "t.ephemeral::int * (p.ephemeral_running + 1)",
      "(NOT t.ephemeral)::int * (p.persistent_running + 1)",
    )}
),
${movePlaces("+", "admitted")},
moved AS (
  UPDATE sandbox.sandboxes s
  SET status = 'starting', status_reason = 'scheduling', generation = a.generation + 1,
      stopped_at = NULL, last_failure_message = NULL
  FROM admitted a WHERE s.id = a.id
  RETURNING s.*
),
run AS (${admitRun(
    "moved",
    "at.now",
    "clock_timestamp()",
    `moved JOIN target t USING (id),
       LATERAL (SELECT greatest(clock_timestamp(), t.stopped_at) AS now) at`,
    "$6",
  )})
SELECT ${columns("moved")}, ${sandboxEvent("sandbox_started", "moved", "$3", "run.admitted_at")},
       ${remembered("start", "moved")}
FROM moved, run`,
  allowedFrom("start"),
);

/** Admits a stop; from here on the run is not billed, and its place is free. */
export const stopSandbox = verb(
  (condition) => `
WITH ${LEASE}, ${PLACES}, ${lockTargetNext(condition)},
moved AS (
  UPDATE sandbox.sandboxes s SET status = 'stopping', status_reason = NULL
  FROM target t, lease l
  WHERE s.id = t.id AND t.status = ANY($7::text[]) AND l.alive AND ${SEES_RUN}
  RETURNING s.*
),
${movePlaces("-", "moved")},
run AS (
  UPDATE sandbox.runs r
  SET desired = 'stopped', stop_admitted_at = at.now, due_at = clock_timestamp(), trace_context = $6::text
  FROM moved m, LATERAL (SELECT greatest(clock_timestamp(), m.created_at) AS now) at
  WHERE r.sandbox_id = m.id AND r.generation = m.generation AND r.closed_at IS NULL
  RETURNING r.stop_admitted_at
)
SELECT ${columns("moved")}, ${sandboxEvent("sandbox_stop_requested", "moved", "$3", "run.stop_admitted_at")},
       ${remembered("stop", "moved")}
FROM moved, run`,
  allowedFrom("stop"),
);

/**
 * Destroys a sandbox: its name, slug and places are free from here on, its run is to be stopped, and the
 * row waits for the engine's word that nothing is left.
 */
export const destroySandbox = verb(
  (condition) => `
WITH ${LEASE}, ${PLACES}, ${lockTargetNext(condition)},
gone AS (
  UPDATE sandbox.sandboxes s SET destroyed_at = clock_timestamp(), expires_at = NULL
  FROM target t
  WHERE s.id = t.id
    AND (t.status <> ALL($7::text[]) OR (EXISTS (SELECT FROM lease WHERE alive) AND ${SEES_RUN}))
  RETURNING s.*
),
${movePlaces("-", "gone", { held: "gone.status = ANY($8::text[])", total: 1 })},
run AS (
  UPDATE sandbox.runs r
  SET desired = 'stopped', stop_admitted_at = coalesce(r.stop_admitted_at, g.destroyed_at), due_at = g.destroyed_at,
      trace_context = $6::text
  FROM gone g
  WHERE r.sandbox_id = g.id AND r.closed_at IS NULL
)
SELECT ${columns("gone")}, ${sandboxEvent("sandbox_destroyed", "gone", "$3", "gone.destroyed_at")},
       ${remembered("destroy", "gone")}
FROM gone`,
  [...HOLDS_COMPUTE],
  [...HOLDS_PLACE],
);

// It changes no places, but two renames that each wait for the other's name would hold up whoever has them locked.
// What is changed to what it is already changes nothing, and is answered as it is.
const RENAME = (condition: string) => `
WITH ${PLACES}, ${lockTargetNext(condition)},
moved AS (
  UPDATE sandbox.sandboxes s SET name = coalesce($6, t.name), slug = coalesce($7, t.slug)
  FROM target t
  WHERE s.id = t.id AND (coalesce($6, t.name), coalesce($7, t.slug)) IS DISTINCT FROM (t.name, t.slug)
  RETURNING s.*, t.name AS old_name, t.slug AS old_slug
),
event AS MATERIALIZED (
  SELECT organization.append_event(org_id, 'sandbox_renamed', $3::jsonb,
    jsonb_build_object('sandbox_id', id, 'name', name, 'slug', slug, 'old_name', old_name, 'old_slug', old_slug),
    clock_timestamp())
  FROM moved
),
outcome AS (
  SELECT ${columns("moved")} FROM moved
  UNION ALL
  SELECT ${columns("target")} FROM target WHERE NOT EXISTS (SELECT FROM moved)
)
SELECT ${columns("outcome")}, (SELECT count(*) FROM event), ${remembered("rename", "outcome")}
FROM outcome`;

/**
 * Renames; null leaves unchanged.
 * @returns undefined where there is no such sandbox
 * @throws a unique violation of sandboxes_name_key or sandboxes_slug_key, or what `isOnRecord` knows
 */
export async function renameSandbox(
  database: Database,
  orgId: string,
  key: SandboxKey,
  actor: Actor,
  to: { name: string | null; slug: string | null },
  memory?: Memory,
): Promise<Sandbox | undefined> {
  const [row] = await database.query<SandboxRow>(
    RENAME(keyCondition(key)),
    orgId,
    keyValue(key),
    JSON.stringify(actor),
    ...memoryValues(memory),
    to.name,
    to.slug,
  );
  return row && toSandbox(row);
}
