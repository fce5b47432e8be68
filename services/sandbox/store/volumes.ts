import { type Database, refusal } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { VolumeChange } from "../domain/change-volume.ts";
import type { CreateVolume } from "../domain/create-volume.ts";
import type { Memory } from "../domain/idempotency.ts";
import type { Status } from "../domain/sandbox.ts";
import type { Volume } from "../domain/volume.ts";
import { memoryValues, remember } from "./idempotency.ts";
import { toVolume, type VolumeRow, volumeColumns } from "./volume-rows.ts";

const COLUMNS = volumeColumns("v");
const remembered = (verb: string, of: string, key: string, hash: string) =>
  remember({ kind: "volume", verb }, of, key, hash);

async function findOne(
  database: Database,
  sql: string,
  ...values: unknown[]
): Promise<Volume | undefined> {
  const [row] = await database.query<VolumeRow>(sql, ...values);
  return row && toVolume(row);
}

const CREATE = `
WITH v AS (
  INSERT INTO sandbox.volumes (id, org_id, kind, name, capacity_gib, labels, created_at, updated_at)
  SELECT $1::uuid, $2::uuid, 'managed', $3, $4::int, $5::jsonb, at.now, at.now
  FROM (SELECT clock_timestamp() AS now) at
  WHERE coalesce(sandbox.gib($4::int) <= sandbox.storage_limit($2::uuid), true)
  RETURNING *
)
SELECT ${COLUMNS}, billing.accrue_storage(v.org_id, v.id, 0, v.created_at)::text AS sample,
       organization.append_event(v.org_id, 'volume_created', $6::jsonb,
         jsonb_build_object('volume_id', v.id, 'name', v.name, 'capacity_gib', v.capacity_gib, 'labels', v.labels),
         v.created_at) AS event,
       ${remembered("create", "v", "$7", "$8")}
FROM v`;

/**
 * Makes a volume, begins its metering and writes its event, all or nothing.
 * @returns undefined where the organization may not store as much
 * @throws what `isVolumeNameTaken` or `isOnRecord` knows
 */
export function createVolume(
  database: Database,
  { id, orgId, name, capacityGib, labels }: CreateVolume & { id: string; orgId: string },
  actor: Actor,
  memory?: Memory,
): Promise<Volume | undefined> {
  return findOne(
    database,
    CREATE,
    id,
    orgId,
    name,
    capacityGib,
    JSON.stringify(labels),
    JSON.stringify(actor),
    ...memoryValues(memory),
  );
}

export function isVolumeNameTaken(error: unknown): boolean {
  return refusal(error)?.constraint === "volumes_name_key";
}

/**
 * @returns the volume as it then is; undefined where there is none, or it may not have this capacity
 * @throws what `isOnRecord` knows
 */
export function updateVolume(
  database: Database,
  orgId: string,
  id: string,
  actor: Actor,
  { capacityGib, labels }: VolumeChange,
  memory?: Memory,
): Promise<Volume | undefined> {
  return findOne(
    database,
    `SELECT ${COLUMNS}, ${remembered("update", "v", "$7", "$8")}
     FROM sandbox.update_volume($1::uuid, $2::uuid, $3::boolean, $4::int, $5::jsonb, $6::jsonb) v`,
    orgId,
    id,
    capacityGib !== undefined,
    capacityGib ?? null,
    labels ? JSON.stringify(labels) : null,
    JSON.stringify(actor),
    ...memoryValues(memory),
  );
}

/**
 * Deletes a volume: its name is free from here on, and its row waits for the engine's word that nothing is left.
 * @param holding the statuses in which a sandbox holds it
 * @returns undefined where there is none, it is the host volume, or something holds it
 * @throws what `isOnRecord` knows
 */
export function deleteVolume(
  database: Database,
  orgId: string,
  id: string,
  actor: Actor,
  holding: readonly Status[],
  memory?: Memory,
): Promise<Volume | undefined> {
  return findOne(
    database,
    `SELECT ${COLUMNS}, ${remembered("delete", "v", "$5", "$6")}
     FROM sandbox.delete_volume($1::uuid, $2::uuid, $3::text[], $4::jsonb) v`,
    orgId,
    id,
    holding,
    JSON.stringify(actor),
    ...memoryValues(memory),
  );
}

export function findVolume(
  database: Database,
  orgId: string,
  id: string,
): Promise<Volume | undefined> {
  return findOne(
    database,
    `SELECT ${COLUMNS} FROM sandbox.volumes v
     WHERE v.id = $2::uuid AND v.org_id = $1::uuid AND v.deleted_at IS NULL`,
    orgId,
    id,
  );
}

export function findHostVolume(database: Database, orgId: string): Promise<Volume | undefined> {
  return findOne(
    database,
    `SELECT ${COLUMNS} FROM sandbox.volumes v WHERE v.org_id = $1::uuid AND v.kind = 'host'`,
    orgId,
  );
}

/** The host volume first, then the oldest first. */
export async function listVolumes(database: Database, orgId: string): Promise<Volume[]> {
  const rows = await database.query<VolumeRow>(
    `SELECT ${COLUMNS} FROM sandbox.volumes v WHERE v.org_id = $1::uuid AND v.deleted_at IS NULL
     ORDER BY v.kind, v.created_at, v.id`,
    orgId,
  );
  return rows.map(toVolume);
}
