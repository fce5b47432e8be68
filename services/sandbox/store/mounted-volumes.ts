import type { Database } from "../../../prisma/database.ts";
import { HOST_VOLUME, VOLUME_FEATURES } from "../domain/mounted-volumes.ts";
import type { Status } from "../domain/sandbox.ts";

// Who starts something keeps its volumes from being deleted until that is committed: a delete then sees it. Who waited
// for a delete is refused.

/** The volumes of the organization `org` with the names of the array `names`. */
function named(org: string, names: string): string {
  return `v.org_id = ${org} AND v.deleted_at IS NULL
    AND (v.name = ANY(${names}) OR v.kind = 'host' AND '${HOST_VOLUME}' = ANY(${names}))`;
}

/** The volumes that a create names: `$1` is the organization, `$3` their names. */
export const VOLUMES = `
volumes AS MATERIALIZED (
  SELECT v.id, coalesce(v.name, '${HOST_VOLUME}') AS name FROM sandbox.volumes v
  WHERE ${named("$1::uuid", "$3::text[]")}
  FOR KEY SHARE
)`;

/** Whether all of them are there. */
export const HAS_VOLUMES = "(SELECT count(*) FROM volumes) = cardinality($3::text[])";

/** Writes down what the row `made` takes something from. */
export const MOUNTED = `
mounted AS (
  INSERT INTO sandbox.mounted_volumes (sandbox_id, name, volume_id)
  SELECT made.id, volumes.name, volumes.id FROM made, volumes
)`;

/** Whether all that the sandbox `of` mounts is there, and stays until this statement is committed. */
export function holdsVolumes(of: string): string {
  const features = `'{${VOLUME_FEATURES.join(", ")}}'::text[]`;
  return `(NOT ${of}.requires && ${features} OR sandbox.hold_volumes(${of}.id))`;
}

/** Which of these names an organization's volumes have. */
export async function listVolumeNames(
  database: Database,
  orgId: string,
  names: readonly string[],
): Promise<string[]> {
  if (names.length === 0) return [];
  const rows = await database.query<{ name: string }>(
    `SELECT coalesce(v.name, '${HOST_VOLUME}') AS name FROM sandbox.volumes v
     WHERE ${named("$1::uuid", "$2::text[]")}`,
    orgId,
    names,
  );
  return rows.map(({ name }) => name);
}

/** The volumes that a sandbox mounts and that are still there, by the names that it has for them. */
export async function listMountedVolumes(database: Database, id: string): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT m.name FROM sandbox.mounted_volumes m
     JOIN sandbox.volumes v ON v.id = m.volume_id AND v.deleted_at IS NULL
     WHERE m.sandbox_id = $1::uuid`,
    id,
  );
  return rows.map(({ name }) => name);
}

/** The names of sandboxes in one of these statuses that mount a volume, at most `most`. */
export async function listHolders(
  database: Database,
  volumeId: string,
  statuses: readonly Status[],
  most: number,
): Promise<string[]> {
  const rows = await database.query<{ name: string }>(
    `SELECT s.name FROM sandbox.mounted_volumes m JOIN sandbox.sandboxes s ON s.id = m.sandbox_id
     WHERE m.volume_id = $1::uuid AND s.destroyed_at IS NULL AND s.status = ANY($2::text[])
     ORDER BY s.name LIMIT $3::int`,
    volumeId,
    statuses,
    most,
  );
  return rows.map(({ name }) => name);
}
