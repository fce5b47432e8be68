import type { SandboxKey } from "../domain/sandbox.ts";
import { PLACES_LOCKED, UPTIME_SECS } from "./quotas.ts";

/** The engine of this deployment: the one whose lease lives, else lived last. */
export const LEASE = `
  lease AS MATERIALIZED (
    SELECT features, expires_at > clock_timestamp() AS alive
    FROM orchestrator.leases ORDER BY expires_at DESC LIMIT 1
  )`;

/**
 * The condition that finds a key: `$1` is the organization, `$2` the id or name. No index serves IS NOT DISTINCT FROM:
 * where a table has no statistics yet, an id would be sought among all names of its organization.
 */
export function keyCondition(key: SandboxKey): string {
  const found =
    "id" in key
      ? "id = $2::uuid AND org_id IS NOT DISTINCT FROM $1::uuid"
      : "org_id = $1::uuid AND name = $2";
  return `${found} AND destroyed_at IS NULL`;
}

export function keyValue(key: SandboxKey): string {
  return "id" in key ? key.id : key.name;
}

/**
 * Every change of a sandbox locks its row first, then its run: one order, so no deadlock, and what
 * a statement judges is what it changes.
 */
export function lockTarget(condition: string): string {
  return `
  target AS MATERIALIZED (
    SELECT * FROM sandbox.sandboxes WHERE ${condition} FOR UPDATE
  )`;
}

/** The same where places change too: behind `lockPlaces`. */
export function lockTargetNext(condition: string): string {
  return lockTarget(`${condition} AND ${PLACES_LOCKED}`);
}

/**
 * Whether this statement sees the run of the locked row `t`. One that waited for a start does not:
 * its snapshot is older than that run. It changes nothing then, and the verb tries again.
 */
export const SEES_RUN = `EXISTS (
    SELECT FROM sandbox.runs seen WHERE seen.sandbox_id = t.id AND seen.generation = t.generation
  )`;

/** Admits a run of the sandbox row `of`, which has its generation already; `from` is where the rows come from. */
export function admitRun(
  of: string,
  admittedAt: string,
  dueAt: string,
  from: string,
  trace: string,
): string {
  const size = (name: string) => `(${of}.spec->'resources'->>'${name}')::int`;
  return `
  INSERT INTO sandbox.runs
    (sandbox_id, generation, org_id, vcpus, memory_mib, disk_size_mib, ephemeral, limit_secs, uptime_secs,
     desired, phase, admitted_at, due_at, trace_context)
  SELECT ${of}.id, ${of}.generation, ${of}.org_id,
         ${size("vcpus")}, ${size("memoryMib")}, ${size("diskSizeMib")}, ${of}.ephemeral,
         least(sandbox.limit_secs(${of}.spec), ${UPTIME_SECS}), ${UPTIME_SECS},
         'running', 'starting', ${admittedAt}, ${dueAt}, ${trace}::text
  FROM ${from}
  RETURNING sandbox_id, admitted_at`;
}

/** The audit event of a change that made the row `of`; parameter `actor` is the actor as JSON. */
export function sandboxEvent(type: string, of: string, actor: string, at: string): string {
  return `organization.append_event(${of}.org_id, '${type}', ${actor}::jsonb,
    jsonb_build_object('sandbox_id', ${of}.id, 'name', ${of}.name, 'slug', ${of}.slug), ${at})`;
}
