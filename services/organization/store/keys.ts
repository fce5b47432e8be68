import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { ApiKey, KeyHolder, KeyMaterial } from "../domain/key.ts";

interface KeyRow {
  id: string;
  name: string;
  prefix: string;
  last_four: string;
  created_at: Date;
  last_used_at: Date | null;
  expires_at: Date | null;
  expired: boolean;
  revoked_at: Date | null;
  replaced_by: string | null;
}

function columns(from: string): string {
  const plain = ["id", "name", "prefix", "last_four", "created_at", "last_used_at"]
    .concat("expires_at", "revoked_at", "replaced_by")
    .map((column) => `${from}.${column}`);
  return [...plain, `coalesce(${from}.expires_at <= clock_timestamp(), false) AS expired`].join(
    ", ",
  );
}

/** SQL for a time as payloads tell it: in UTC, whatever zone the database is in. */
function told(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

function toApiKey(row: KeyRow): ApiKey {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    lastFour: row.last_four,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    expired: row.expired,
    revokedAt: row.revoked_at,
    replacedBy: row.replaced_by,
  };
}

/** Of a key that is neither revoked nor expired. */
export async function findKeyHolder(
  database: Database,
  sha256: Uint8Array,
): Promise<KeyHolder | undefined> {
  const [holder] = await database.query<KeyHolder>(
    `SELECT k.org_id AS "orgId", k.id AS "apiKeyId", k.name AS "apiKeyName",
            o.suspended_at IS NOT NULL AS "orgSuspended", k.expires_at AS "expiresAt"
     FROM organization.api_keys k JOIN organization.organizations o ON o.id = k.org_id
     WHERE k.key_sha256 = $1 AND k.revoked_at IS NULL
       AND (k.expires_at IS NULL OR k.expires_at > now())`,
    sha256,
  );
  return holder;
}

/** Newest first, those that have ended too. */
export async function listKeys(database: Database, orgId: string): Promise<ApiKey[]> {
  const rows = await database.query<KeyRow>(
    `SELECT ${columns("k")} FROM organization.api_keys k WHERE k.org_id = $1::uuid
     ORDER BY k.created_at DESC, k.id DESC`,
    orgId,
  );
  return rows.map(toApiKey);
}

export async function findKey(
  database: Database,
  orgId: string,
  id: string,
): Promise<ApiKey | undefined> {
  const [row] = await database.query<KeyRow>(
    `SELECT ${columns("k")} FROM organization.api_keys k WHERE k.org_id = $1::uuid AND k.id = $2::uuid`,
    orgId,
    id,
  );
  return row && toApiKey(row);
}

interface KeyChangeBy {
  orgId: string;
  actor: Actor;
}

/** @returns undefined where there is no such organization */
export async function createKey(
  database: Database,
  given: KeyChangeBy & { name: string; expiresAt: Date | null; material: KeyMaterial },
): Promise<ApiKey | undefined> {
  const { orgId, actor, name, expiresAt, material } = given;
  const [row] = await database.query<KeyRow>(
    `WITH k AS (
       INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four, expires_at)
       SELECT organization.uuid7(now()), o.id, $3, $4, $5, $6, $7::timestamptz
       FROM organization.organizations o WHERE o.id = $1::uuid
       RETURNING *
     )
     SELECT ${columns("k")}, organization.append_event(k.org_id, 'api_key_created', $2::jsonb,
       jsonb_build_object('api_key_id', k.id, 'name', k.name, 'prefix', k.prefix, 'last_four', k.last_four,
                          'expires_at', ${told("k.expires_at")}), k.created_at) AS event
     FROM k`,
    orgId,
    JSON.stringify(actor),
    name,
    material.sha256,
    material.prefix,
    material.lastFour,
    expiresAt?.toISOString() ?? null,
  );
  return row && toApiKey(row);
}

/** @returns undefined where there is none, or it is revoked already */
export async function revokeKey(
  database: Database,
  { orgId, actor, id }: KeyChangeBy & { id: string },
): Promise<ApiKey | undefined> {
  const [row] = await database.query<KeyRow>(
    `WITH k AS (
       UPDATE organization.api_keys SET revoked_at = clock_timestamp()
       WHERE org_id = $1::uuid AND id = $2::uuid AND revoked_at IS NULL RETURNING *
     )
     SELECT ${columns("k")}, organization.append_event(k.org_id, 'api_key_revoked', $3::jsonb,
       jsonb_build_object('api_key_id', k.id, 'name', k.name, 'prefix', k.prefix, 'last_four', k.last_four),
       k.revoked_at) AS event
     FROM k`,
    orgId,
    id,
    JSON.stringify(actor),
  );
  return row && toApiKey(row);
}

/** @returns undefined where there is none, or it is not good any more */
export async function rotateKey(
  database: Database,
  given: KeyChangeBy & { id: string; overlapSecs: number; material: KeyMaterial },
): Promise<{ key: ApiKey; replaced: ApiKey } | undefined> {
  const { orgId, actor, id, overlapSecs, material } = given;
  const rows = await database.query<KeyRow>(
    ROTATE,
    orgId,
    id,
    JSON.stringify(actor),
    material.sha256,
    material.prefix,
    material.lastFour,
    overlapSecs,
  );
  const key = rows.find(({ replaced_by }) => replaced_by === null);
  const replaced = rows.find(({ replaced_by }) => replaced_by !== null);
  return key && replaced && { key: toApiKey(key), replaced: toApiKey(replaced) };
}

// Of two at once the later one waits for the row, and then finds it rotated.
const ROTATE = `
WITH target AS MATERIALIZED (
  SELECT k.*, at.now
  FROM (SELECT * FROM organization.api_keys WHERE org_id = $1::uuid AND id = $2::uuid FOR UPDATE) k,
       LATERAL (SELECT greatest(clock_timestamp(), k.created_at) AS now) at
),
good AS (
  SELECT * FROM target
  WHERE revoked_at IS NULL AND replaced_by IS NULL AND (expires_at IS NULL OR expires_at > now)
),
fresh AS (
  INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four, created_at, expires_at)
  SELECT organization.uuid7(now), org_id, name, $4, $5, $6, now, expires_at FROM good
  RETURNING *
),
ended AS (
  UPDATE organization.api_keys k
  SET replaced_by = fresh.id, expires_at = least(k.expires_at, good.now + $7::int * interval '1 second')
  FROM good, fresh WHERE k.id = good.id
  RETURNING k.*
)
SELECT ${columns("fresh")},
  organization.append_event(ended.org_id, 'api_key_rotated', $3::jsonb,
    jsonb_build_object('api_key_id', ended.id, 'name', ended.name, 'last_four', ended.last_four,
      'expires_at', ${told("ended.expires_at")}, 'replaced_by', fresh.id, 'replaced_by_prefix', fresh.prefix,
      'replaced_by_last_four', fresh.last_four), fresh.created_at) AS event
FROM fresh, ended
UNION ALL
SELECT ${columns("ended")}, NULL FROM ended`;
