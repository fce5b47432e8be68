import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { allowedFrom, HOLDS_COMPUTE } from "../domain/lifecycle.ts";
import type { Sandbox, SandboxKey } from "../domain/sandbox.ts";
import { keyCondition, keyValue, LEASE, lockTarget, SEES_RUN, sandboxEvent } from "./fragments.ts";
import { columns, type SandboxRow, toSandbox } from "./rows.ts";

/**
 * Each returns the sandbox as changed, or undefined where state, lease or absence refused the change,
 * or where it was under way with another start.
 */
type Verb = (
  database: Database,
  orgId: string,
  key: SandboxKey,
  actor: Actor,
) => Promise<Sandbox | undefined>;

function verb(sqlFor: (condition: string) => string, ...statuses: readonly string[][]): Verb {
  return async (database, orgId, key, actor) => {
    const [row] = await database.query<SandboxRow>(
      sqlFor(keyCondition(key)),
      orgId,
      keyValue(key),
      JSON.stringify(actor),
      ...statuses,
    );
    return row && toSandbox(row);
  };
}

/** Admits a start: state, run, event and queue entry in one statement. */
export const startSandbox = verb(
  (condition) => `
WITH ${LEASE}, ${lockTarget(condition)},
moved AS (
  UPDATE sandbox.sandboxes s
  SET status = 'starting', status_reason = 'scheduling', generation = t.generation + 1,
      stopped_at = NULL, last_failure_message = NULL
  FROM target t, lease l
  WHERE s.id = t.id AND t.status = ANY($4::text[]) AND NOT (t.ephemeral AND t.generation > 0)
    AND l.alive AND t.requires <@ l.features
  RETURNING s.*
),
run AS (
  INSERT INTO sandbox.runs
    (sandbox_id, generation, org_id, vcpus, memory_mib, disk_size_mib, ephemeral, limit_secs,
     desired, phase, admitted_at, due_at)
  SELECT m.id, m.generation, m.org_id,
         (m.spec->'resources'->>'vcpus')::int, (m.spec->'resources'->>'memoryMib')::int,
         (m.spec->'resources'->>'diskSizeMib')::int, m.ephemeral, sandbox.limit_secs(m.spec),
         'running', 'starting', at.now, clock_timestamp()
  FROM moved m JOIN target t USING (id),
       LATERAL (SELECT greatest(clock_timestamp(), t.stopped_at) AS now) at
  RETURNING admitted_at
)
SELECT ${columns("moved")}, ${sandboxEvent("sandbox_started", "moved", "$3", "run.admitted_at")}
FROM moved, run`,
  allowedFrom("start"),
);

/** Admits a stop; from here on the run is not billed. */
export const stopSandbox = verb(
  (condition) => `
WITH ${LEASE}, ${lockTarget(condition)},
moved AS (
  UPDATE sandbox.sandboxes s SET status = 'stopping', status_reason = NULL
  FROM target t, lease l
  WHERE s.id = t.id AND t.status = ANY($4::text[]) AND l.alive AND ${SEES_RUN}
  RETURNING s.*
),
run AS (
  UPDATE sandbox.runs r
  SET desired = 'stopped', stop_admitted_at = at.now, due_at = clock_timestamp()
  FROM moved m, LATERAL (SELECT greatest(clock_timestamp(), m.created_at) AS now) at
  WHERE r.sandbox_id = m.id AND r.generation = m.generation AND r.closed_at IS NULL
  RETURNING r.stop_admitted_at
)
SELECT ${columns("moved")}, ${sandboxEvent("sandbox_stop_requested", "moved", "$3", "run.stop_admitted_at")}
FROM moved, run`,
  allowedFrom("stop"),
);

/**
 * Destroys a sandbox: its name and slug are free from here on, its run is to be stopped, and the
 * row waits for the engine's word that nothing is left.
 */
export const destroySandbox = verb(
  (condition) => `
WITH ${LEASE}, ${lockTarget(condition)},
gone AS (
  UPDATE sandbox.sandboxes s SET destroyed_at = clock_timestamp(), expires_at = NULL
  FROM target t
  WHERE s.id = t.id
    AND (t.status <> ALL($4::text[]) OR (EXISTS (SELECT FROM lease WHERE alive) AND ${SEES_RUN}))
  RETURNING s.*
),
run AS (
  UPDATE sandbox.runs r
  SET desired = 'stopped', stop_admitted_at = coalesce(r.stop_admitted_at, g.destroyed_at), due_at = g.destroyed_at
  FROM gone g
  WHERE r.sandbox_id = g.id AND r.closed_at IS NULL
)
SELECT ${columns("gone")}, ${sandboxEvent("sandbox_destroyed", "gone", "$3", "gone.destroyed_at")}
FROM gone`,
  [...HOLDS_COMPUTE],
);

const RENAME = (condition: string) => `
WITH ${lockTarget(condition)},
moved AS (
  UPDATE sandbox.sandboxes s SET name = coalesce($4, t.name), slug = coalesce($5, t.slug)
  FROM target t
  WHERE s.id = t.id AND (coalesce($4, t.name), coalesce($5, t.slug)) IS DISTINCT FROM (t.name, t.slug)
  RETURNING s.*, t.name AS old_name, t.slug AS old_slug
)
SELECT ${columns("moved")}, organization.append_event(org_id, 'sandbox_renamed', $3::jsonb,
  jsonb_build_object('sandbox_id', id, 'name', name, 'slug', slug, 'old_name', old_name, 'old_slug', old_slug),
  clock_timestamp())
FROM moved`;

/**
 * Renames; null leaves unchanged.
 * @returns undefined where there is no such sandbox or nothing to change
 * @throws a unique violation of sandboxes_name_key or sandboxes_slug_key
 */
export async function renameSandbox(
  database: Database,
  orgId: string,
  key: SandboxKey,
  actor: Actor,
  to: { name: string | null; slug: string | null },
): Promise<Sandbox | undefined> {
  const [row] = await database.query<SandboxRow>(
    RENAME(keyCondition(key)),
    orgId,
    keyValue(key),
    JSON.stringify(actor),
    to.name,
    to.slug,
  );
  return row && toSandbox(row);
}
