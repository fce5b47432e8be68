import type { Database } from "../../../prisma/database.ts";
import type { Instance } from "../engines/engine.ts";

/** An open run that an engine has, as it is compared with what the engine lists. */
export interface OpenRun {
  sandboxId: string;
  generation: number;
  phase: "starting" | "running";
  /** It is to be stopped, or has reached its limit. */
  due: boolean;
  /** The end of its workload is known. */
  workloadEnded: boolean;
}

export async function listOpen(database: Database): Promise<OpenRun[]> {
  return database.query<OpenRun>(
    `SELECT sandbox_id AS "sandboxId", generation, phase, coalesce(due_at <= now(), false) AS due,
            workload_ended_at IS NOT NULL AS "workloadEnded"
     FROM sandbox.runs WHERE closed_at IS NULL AND placed_at IS NOT NULL`,
  );
}

/** The open runs of these sandboxes, and whether a start is still queued. */
export async function listOpenOf(
  database: Database,
  ids: readonly string[],
): Promise<{ sandboxId: string; generation: number; queued: boolean }[]> {
  return database.query(
    `SELECT sandbox_id AS "sandboxId", generation, placed_at IS NULL AS queued
     FROM sandbox.runs WHERE closed_at IS NULL AND sandbox_id = ANY($1::uuid[])`,
    ids,
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
  const open = await database.query<{ sandboxId: string; generation: number; startedAt: Date }>(
    `SELECT sandbox_id AS "sandboxId", generation, running_at AS "startedAt"
     FROM sandbox.runs WHERE closed_at IS NULL AND phase = 'running'`,
  );
  return open.map((run) => ({
    ...run,
    state: "running",
    endedAt: null,
    exitCode: null,
    outOfMemory: false,
    workloadEndedAt: null,
  }));
}
