import type { Database } from "../../../prisma/database.ts";
import type { VolumeKey } from "../engines/volume-store.ts";

/** A volume as far as whoever works with its files wants to know. */
export interface FoundVolume extends VolumeKey {
  /** It may hold only so much, or all of its organization together may. */
  capped: boolean;
}

/** An organization's volume that is not deleted. */
export async function findVolume(
  database: Database,
  orgId: string,
  volumeId: string,
): Promise<FoundVolume | undefined> {
  const [row] = await database.query<FoundVolume>(
    `SELECT id AS "volumeId", org_id AS "orgId",
            capacity_gib IS NOT NULL OR billing.limits(org_id)->>'max_total_storage_gib' IS NOT NULL AS capped
     FROM sandbox.volumes WHERE id = $1::uuid AND org_id = $2::uuid AND deleted_at IS NULL`,
    volumeId,
    orgId,
  );
  return row;
}

/** These volumes may change from now on for so many seconds. */
export async function noteChanges(
  database: Database,
  volumeIds: readonly string[],
  secs: number,
): Promise<void> {
  await database.query(
    `INSERT INTO orchestrator.volume_changes AS c (volume_id, until)
     SELECT id, clock_timestamp() + $2::float8 * interval '1 second' FROM unnest($1::uuid[]) AS given (id)
     ON CONFLICT (volume_id) DO UPDATE SET until = greatest(c.until, excluded.until)
     RETURNING volume_id`,
    volumeIds,
    secs,
  );
}

/** The same for those that a sandbox mounts which is to be removed; afterwards nothing tells which they were. */
export async function noteMountsOf(
  database: Database,
  sandboxId: string,
  secs: number,
): Promise<void> {
  await database.query(
    `INSERT INTO orchestrator.volume_changes AS c (volume_id, until)
     SELECT DISTINCT volume_id, clock_timestamp() + $2::float8 * interval '1 second'
     FROM sandbox.mounted_volumes WHERE sandbox_id = $1::uuid
     ON CONFLICT (volume_id) DO UPDATE SET until = greatest(c.until, excluded.until)
     RETURNING volume_id`,
    sandboxId,
    secs,
  );
}

// A mount that can be written through; binds and disk images are of the host volume, whose name is empty.
const WRITABLE = `EXISTS (
  SELECT FROM jsonb_array_elements(s.spec->'mounts') AS x
  WHERE CASE x->>'type' WHEN 'named' THEN x->>'name' = m.name WHEN 'bind' THEN m.name = '' WHEN 'disk_image' THEN m.name = '' END
    AND NOT coalesce((x->'options'->>'readonly')::boolean, false))`;

/**
 * The volumes that machines have mounted, and may write; noted as changing for so many seconds, where less than a third of that is left.
 */
export async function noteMounted(database: Database, secs: number): Promise<string[]> {
  const rows = await database.query<{ id: string }>(
    `WITH mounted AS MATERIALIZED (
       SELECT DISTINCT m.volume_id FROM sandbox.mounted_volumes m
       JOIN sandbox.runs r ON r.sandbox_id = m.sandbox_id AND r.closed_at IS NULL AND r.placed_at IS NOT NULL
       JOIN sandbox.sandboxes s ON s.id = m.sandbox_id
       WHERE ${WRITABLE}
     ),
     noted AS (
       INSERT INTO orchestrator.volume_changes AS c (volume_id, until)
       SELECT volume_id, clock_timestamp() + $1::float8 * interval '1 second' FROM mounted
       ON CONFLICT (volume_id) DO UPDATE SET until = excluded.until
       WHERE c.until < clock_timestamp() + $1::float8 / 3 * interval '1 second'
       RETURNING volume_id
     )
     SELECT volume_id AS id FROM mounted WHERE (SELECT count(*) FROM noted) >= 0`,
    secs,
  );
  return rows.map(({ id }) => id);
}

export interface MeasureQuery {
  limit: number;
  /** Volumes to be measured in any case. */
  soon: readonly string[];
  /** Volumes that are not to be measured now. */
  resting: readonly string[];
  /** How long ago one has to have been measured that changes, or does not. */
  changedSecs: number;
  idleSecs: number;
}

/** Volumes that it is time to measure, the longest overdue first; forgets changes that a measurement has seen. */
export async function listToMeasure(database: Database, query: MeasureQuery): Promise<VolumeKey[]> {
  const ago = (secs: string) => `now() - ${secs}::float8 * interval '1 second'`;
  // A part of the index each: with OR between them, or a clock that moves, all of it would be looked through in every round.
  const first = (when: string) => `
       (SELECT id, org_id, measured_at FROM sandbox.volumes
        WHERE deleted_at IS NULL AND ${when} AND id <> ALL($3::uuid[])
        ORDER BY measured_at NULLS FIRST LIMIT $1::int)`;
  return database.query<VolumeKey>(
    `WITH seen AS (
       DELETE FROM orchestrator.volume_changes c WHERE c.until < clock_timestamp() AND NOT EXISTS (
         SELECT FROM sandbox.volumes v WHERE v.id = c.volume_id AND v.deleted_at IS NULL
           AND (v.measured_at IS NULL OR v.measured_at <= c.until))
       RETURNING c.volume_id
     ),
     due AS (
       ${first("measured_at IS NULL")}
       UNION
       ${first(`measured_at < ${ago("$5")}`)}
       UNION
       -- The clock was set back.
       ${first("measured_at > now()")}
       UNION
       SELECT v.id, v.org_id, v.measured_at FROM orchestrator.volume_changes c JOIN sandbox.volumes v ON v.id = c.volume_id
       WHERE v.deleted_at IS NULL AND v.measured_at <= c.until AND v.measured_at < ${ago("$4")} AND v.id <> ALL($3::uuid[])
       UNION
       SELECT id, org_id, measured_at FROM sandbox.volumes
       WHERE deleted_at IS NULL AND id = ANY($2::uuid[]) AND id <> ALL($3::uuid[])
     )
     SELECT id AS "volumeId", org_id AS "orgId" FROM due WHERE (SELECT count(*) FROM seen) >= 0
     ORDER BY measured_at NULLS FIRST LIMIT $1::int`,
    query.limit,
    query.soon,
    query.resting,
    query.changedSecs,
    query.idleSecs,
  );
}

/** Volumes of an organization of which the last measurement may not tell any more what they hold. */
export async function listChangedOf(database: Database, orgId: string): Promise<VolumeKey[]> {
  return database.query<VolumeKey>(
    `SELECT v.id AS "volumeId", v.org_id AS "orgId" FROM sandbox.volumes v
     LEFT JOIN orchestrator.volume_changes c ON c.volume_id = v.id
     WHERE v.org_id = $1::uuid AND v.deleted_at IS NULL AND (v.measured_at IS NULL OR v.measured_at <= c.until)`,
    orgId,
  );
}

/** Deleted volumes of which bytes may be left, oldest first. */
export async function listDeletedVolumes(
  database: Database,
  limit: number,
  busy: readonly string[],
): Promise<VolumeKey[]> {
  return database.query<VolumeKey>(
    `SELECT id AS "volumeId", org_id AS "orgId" FROM sandbox.volumes
     WHERE deleted_at IS NOT NULL AND id <> ALL($2::uuid[]) ORDER BY deleted_at LIMIT $1::int`,
    limit,
    busy,
  );
}

/** The database's clock. */
export async function readClock(database: Database): Promise<Date> {
  const [row] = await database.query<{ now: Date }>("SELECT clock_timestamp() AS now");
  if (!row) throw new Error("the database tells no time");
  return row.now;
}

/** The mark of the folder that volumes lie in; null: none was made yet. */
export async function readVolumesMark(database: Database): Promise<string | null> {
  const { volumesMark } = await database.prisma.installation.findFirstOrThrow();
  return volumesMark;
}

/** Writes a folder's mark down, unless there is one. @returns the one that is written down then */
export async function claimVolumesMark(database: Database, mark: string): Promise<string> {
  const [row] = await database.query<{ mark: string }>(
    `UPDATE orchestrator.installation SET volumes_mark = coalesce(volumes_mark, $1::uuid)
     RETURNING volumes_mark::text AS mark`,
    mark,
  );
  if (!row) throw new Error("there is no installation");
  return row.mark;
}
