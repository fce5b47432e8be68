import type { Database } from "../../../prisma/database.ts";
import type { RunKey } from "../engines/engine.ts";

/** A run as far as somebody who reads its logs wants to know. */
export interface RunState extends RunKey {
  /** Of the sandbox's latest run. */
  latest: number;
  destroyed: boolean;
  admittedAt: Date;
  placedAt: Date | null;
  runningAt: Date | null;
  stopAdmittedAt: Date | null;
  closedAt: Date | null;
  /** Why it failed, where it did and is the latest. */
  failure: string | null;
}

const STATE = `r.sandbox_id AS "sandboxId", r.generation, coalesce(s.generation, r.generation) AS latest,
  s.id IS NULL OR s.destroyed_at IS NOT NULL AS destroyed, r.admitted_at AS "admittedAt",
  r.placed_at AS "placedAt", r.running_at AS "runningAt", r.stop_admitted_at AS "stopAdmittedAt",
  r.closed_at AS "closedAt",
  CASE WHEN r.outcome = 'failed' AND s.generation = r.generation THEN s.last_failure_message END AS failure`;

/** The latest run of an organization's sandbox, null where it never had one; undefined: there is no such sandbox. */
export async function findLatestRun(
  database: Database,
  orgId: string,
  sandboxId: string,
): Promise<RunState | null | undefined> {
  const [row] = await database.query<RunState | { sandboxId: null }>(
    `SELECT ${STATE}
     FROM sandbox.sandboxes s
     LEFT JOIN sandbox.runs r ON r.sandbox_id = s.id AND r.generation = s.generation
     WHERE s.id = $1::uuid AND s.org_id = $2::uuid AND s.destroyed_at IS NULL`,
    sandboxId,
    orgId,
  );
  if (!row) return undefined;
  return row.sandboxId === null ? null : row;
}

/** How these runs are now. */
export async function listRunStates(
  database: Database,
  runs: readonly RunKey[],
): Promise<RunState[]> {
  return database.query<RunState>(
    `SELECT ${STATE}
     FROM unnest($1::uuid[], $2::int[]) AS wanted (sandbox_id, generation)
     JOIN sandbox.runs r USING (sandbox_id, generation)
     LEFT JOIN sandbox.sandboxes s ON s.id = r.sandbox_id`,
    runs.map(({ sandboxId }) => sandboxId),
    runs.map(({ generation }) => generation),
  );
}
