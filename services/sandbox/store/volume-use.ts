import type { Database } from "../../../prisma/database.ts";
import type { VolumeMeasurement, VolumeWrite } from "../domain/volume-use.ts";

/** A quota that has no room for a write: its name, and `limit`, `used` and `requested` in bytes. */
export type NoRoom = { quota: string } & Record<string, string>;

/** @returns undefined where the write has its room */
export async function reserveBytes(
  database: Database,
  orgId: string,
  { id, volumeId, bytes }: VolumeWrite,
): Promise<NoRoom | "no volume" | undefined> {
  const [row] = await database.query<{ refused: NoRoom | Record<string, never> | null }>(
    "SELECT sandbox.reserve_volume_bytes($1::uuid, $2::uuid, $3::uuid, $4::text::bigint) AS refused",
    orgId,
    volumeId,
    id,
    String(bytes),
  );
  const refused = row?.refused;
  if (!refused) return undefined;
  return "quota" in refused ? (refused as NoRoom) : "no volume";
}

/** What it wrote counts until a measurement that began later has seen it; where that is nothing, nothing stays. */
export async function settleWrite(
  database: Database,
  { id, bytes }: Pick<VolumeWrite, "id" | "bytes">,
): Promise<void> {
  await database.query(
    `WITH none AS (
       DELETE FROM sandbox.volume_writes WHERE id = $1::uuid AND settled_at IS NULL AND $2::text::bigint = 0
     )
     UPDATE sandbox.volume_writes SET bytes = $2::text::bigint, settled_at = clock_timestamp()
     WHERE id = $1::uuid AND settled_at IS NULL AND $2::text::bigint > 0 RETURNING id`,
    id,
    String(bytes),
  );
}

/** Writes that one statement gives up. */
export const WRITES_AT_ONCE = 1_000;

/** Gives up writes that were not heard of for too long. @returns how many */
export async function giveUpWrites(database: Database): Promise<number> {
  const [row] = await database.query<{ n: number }>(
    `WITH gone AS (
       DELETE FROM sandbox.volume_writes WHERE id = ANY(ARRAY(
         SELECT id FROM sandbox.volume_writes WHERE settled_at IS NULL AND expires_at <= clock_timestamp()
         ORDER BY expires_at LIMIT ${WRITES_AT_ONCE} FOR UPDATE SKIP LOCKED))
       RETURNING 1
     )
     SELECT count(*)::int AS n FROM gone`,
  );
  return row?.n ?? 0;
}

/** Judges anew who is over a storage limit: that may have been raised. Locked in one order, by any number of processes. */
export async function judgeStorage(database: Database): Promise<void> {
  await database.query(
    `SELECT count(*) FROM (
       SELECT sandbox.lock_storage(o.org_id), sandbox.judge_storage(o.org_id, clock_timestamp())
       FROM (SELECT org_id FROM sandbox.storage WHERE over_limit_at IS NOT NULL ORDER BY org_id) o
       OFFSET 0
     ) judged`,
  );
}

/** @returns false where the volume is deleted, or a later measurement is known */
export async function reportVolumeUse(
  database: Database,
  { volumeId, usedBytes, measuredAt }: VolumeMeasurement,
): Promise<boolean> {
  const [row] = await database.query<{ applied: boolean }>(
    "SELECT sandbox.report_volume_use($1::uuid, $2::text::bigint, $3::timestamptz) AS applied",
    volumeId,
    String(usedBytes),
    measuredAt.toISOString(),
  );
  return row?.applied ?? false;
}

/** @returns false where there is no such volume, or it is not deleted */
export async function reportVolumeRemoved(database: Database, id: string): Promise<boolean> {
  const rows = await database.query<{ id: string }>(
    "DELETE FROM sandbox.volumes WHERE id = $1::uuid AND deleted_at IS NOT NULL RETURNING id",
    id,
  );
  return rows.length > 0;
}
