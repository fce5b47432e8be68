import type { Database } from "../../../prisma/database.ts";
import type { Limit, Standing } from "../domain/quotas.ts";

// A run holds a place while it is open and is to run. Whoever admits a start takes one; who admits its stop or its
// destroy, or writes down that it ended by itself, gives it back.

/** The limits of the organization that `org` names. */
export function limitsOf(org: string): string {
  return `limits AS MATERIALIZED (SELECT billing.limits(${org}) AS given)`;
}

const LIMITS = "(SELECT given FROM limits)";

// No limit is null, and so is every comparison with it.
function within(asked: string, limit: Limit): string {
  return `coalesce(${asked} <= (${LIMITS}->>'${limit}')::bigint, true)`;
}

/** Whether a sandbox of this spec is within what one sandbox may have; without a disk size it is. */
export function isWithinSize(spec: string): string {
  const resource = (name: string) => `coalesce((${spec}->'resources'->>'${name}')::int, 0)`;
  return [
    within(resource("vcpus"), "max_vcpus_per_sandbox"),
    within(resource("memoryMib"), "max_memory_mib_per_sandbox"),
    within(resource("diskSizeMib"), "max_disk_size_mib_per_sandbox"),
  ].join(" AND ");
}

/** Whether there may be so many sandboxes. */
export function hasRoom(total: string): string {
  return within(total, "max_sandboxes");
}

/** Whether one more may run, where so many do with it; a kind of which there are 0 is not asked for. */
export function mayRun(ephemeral: string, persistent: string): string {
  return `(${LIMITS}->>'exhausted_pool') IS NULL
    AND ${within("1", "max_uptime_minutes_per_sandbox")}
    AND ${within(ephemeral, "max_concurrent_ephemeral_running")}
    AND ${within(persistent, "max_concurrent_persistent_running")}`;
}

/** Seconds that a run may be up; null: any. */
export const UPTIME_SECS = `(${LIMITS}->>'max_uptime_minutes_per_sandbox')::bigint * 60`;

/**
 * Every statement that takes or gives back places, or waits for a name, locks their row before any other: one order,
 * so no deadlock. Where `org` is null nothing is locked.
 */
export function lockPlaces(org: string): string {
  return `
  place AS MATERIALIZED (
    SELECT * FROM sandbox.places WHERE org_id = ${org} FOR UPDATE
  )`;
}

/** True, once the places are locked. */
export const PLACES_LOCKED = "(SELECT count(*) FROM place) >= 0";

/** Takes (`+`) or gives back (`-`) the places of the row `of`: of its run where `held`, and of `total` sandboxes. */
export function movePlaces(sign: "+" | "-", of: string, { held = "true", total = 0 } = {}): string {
  const moved = (which: string) => `(${of}.ephemeral = ${which} AND ${held})::int`;
  // Whoever moves none may not have locked them.
  const moves = total > 0 ? "true" : held;
  return `
  places AS (
    UPDATE sandbox.places p
    SET total_sandboxes = p.total_sandboxes ${sign} ${total},
        ephemeral_running = p.ephemeral_running ${sign} ${moved("true")},
        persistent_running = p.persistent_running ${sign} ${moved("false")}
    FROM ${of} WHERE p.org_id = ${of}.org_id AND ${moves}
  )`;
}

/** What an organization may have and has, as it is now. */
export async function findStanding(database: Database, orgId: string): Promise<Standing> {
  const [row] = await database.query<{
    limits: Record<string, number | string | null> | null;
    total: number;
    ephemeral: number;
    persistent: number;
  }>(
    `SELECT billing.limits(given.org) AS limits, coalesce(p.total_sandboxes, 0) AS total,
            coalesce(p.ephemeral_running, 0) AS ephemeral, coalesce(p.persistent_running, 0) AS persistent
     FROM (SELECT $1::uuid AS org) given LEFT JOIN sandbox.places p ON p.org_id = given.org`,
    orgId,
  );
  const { limits, total = 0, ephemeral = 0, persistent = 0 } = row ?? {};
  const { exhausted_pool: pool, ...numbers } = limits ?? {};
  return {
    limits: numbers as Standing["limits"],
    exhaustedPool: typeof pool === "string" ? pool : null,
    used: { total, ephemeral, persistent },
  };
}
