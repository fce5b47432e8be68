import type { Database } from "../../../prisma/database.ts";
import { queryJson } from "../../../prisma/json-rows.ts";
import { Conditions, type Placed, slice, toUs } from "../../../prisma/pages.ts";
import type { PagePoint, Slice } from "../../../runtime/pages.ts";
import type { Sandbox, SandboxKey, SeenSandbox, Status } from "../domain/sandbox.ts";
import type { SandboxSpec } from "../domain/spec.ts";
import { keyCondition, keyValue } from "./fragments.ts";
import {
  columns,
  columnsWithout,
  type KeptSandbox,
  type SandboxRow,
  toKeptSandbox,
  toSandbox,
} from "./rows.ts";

export async function findSandbox(
  database: Database,
  orgId: string,
  key: SandboxKey,
): Promise<Sandbox | undefined> {
  const [row] = await database.query<SandboxRow>(
    `SELECT ${columns("s")} FROM sandbox.sandboxes s WHERE ${keyCondition(key)}`,
    orgId,
    keyValue(key),
  );
  return row && toSandbox(row);
}

/** Of one organization; what repeats is found once. */
export interface WantedSandboxes {
  ids: readonly string[];
  names: readonly string[];
  /** Ids of those whose spec is not read. */
  knownSpecs: readonly string[];
}

const WANTED = {
  // No index serves IS NOT DISTINCT FROM: see keyCondition.
  id: "s.org_id IS NOT DISTINCT FROM $1::uuid AND s.id = ANY($2::uuid[])",
  name: "s.org_id = $1::uuid AND s.name = ANY($2::text[])",
};

export async function findSandboxes(
  database: Database,
  orgId: string,
  { ids, names, knownSpecs }: WantedSandboxes,
): Promise<SeenSandbox[]> {
  const by = async (column: keyof typeof WANTED, values: readonly string[]) =>
    values.length === 0
      ? []
      : queryJson<KeptSandbox<SandboxSpec | null>>(
          database,
          `SELECT ${columnsWithout("s.id = ANY($3::uuid[])", "s")}
           FROM sandbox.sandboxes s WHERE ${WANTED[column]} AND s.destroyed_at IS NULL`,
          orgId,
          values,
          knownSpecs,
        );
  const rows = await Promise.all([by("id", ids), by("name", names)]);
  return rows.flat().map(toKeptSandbox);
}

export interface PageQuery {
  orgId: string;
  limit: number;
  after: PagePoint | null;
  labels: Record<string, string> | null;
  statuses: Status[] | null;
  omitSpecs?: boolean;
}

/** Newest first. */
export async function listSandboxes(
  database: Database,
  { orgId, limit, after, labels, statuses, omitSpecs = false }: PageQuery,
): Promise<Slice<SeenSandbox>> {
  const where = new Conditions();
  where.add(`s.org_id = ${where.place(orgId)}::uuid`);
  where.add("s.destroyed_at IS NULL");
  const most = where.place(limit + 1);
  where.behind(after, "s.created_at", "s.id");
  if (labels) where.add(`s.spec->'labels' @> ${where.place(JSON.stringify(labels))}::jsonb`);
  if (statuses) where.add(`s.status = ANY(${where.place(statuses)}::text[])`);
  const rows = await queryJson<KeptSandbox<SandboxSpec | null> & Placed>(
    database,
    `SELECT ${columnsWithout(String(omitSpecs), "s")}, ${toUs("s.created_at")} AS us
     FROM sandbox.sandboxes s WHERE ${where.sql}
     ORDER BY s.created_at DESC, s.id DESC LIMIT ${most}::int`,
    ...where.values,
  );
  const { rows: page, next } = slice(rows, limit);
  return { rows: page.map(toKeptSandbox), next };
}

/** Who holds a name of the organization, or a slug. */
export async function findHolder(
  database: Database,
  orgId: string,
  name: string,
): Promise<{ id: string; status: Status } | undefined> {
  const [row] = await database.query<{ id: string; status: Status }>(
    "SELECT id, status FROM sandbox.sandboxes WHERE org_id = $1::uuid AND name = $2 AND destroyed_at IS NULL",
    orgId,
    name,
  );
  return row;
}

/** The engine whose lease lives, else lived last; undefined before any. */
export async function findEngine(
  database: Database,
): Promise<{ features: string[]; alive: boolean } | undefined> {
  const [row] = await database.query<{ features: string[]; alive: boolean }>(
    `SELECT features, expires_at > clock_timestamp() AS alive
     FROM orchestrator.leases ORDER BY expires_at DESC LIMIT 1`,
  );
  return row;
}

/** What a sandbox's patches ask of an engine; the patches themselves are sealed. */
export async function listPatchFeatures(database: Database, id: string): Promise<string[]> {
  const rows = await database.query<{ feature: string }>(
    `SELECT feature FROM sandbox.sandboxes, unnest(requires) AS feature
     WHERE id = $1::uuid AND split_part(feature, '.', 1) = 'patches'`,
    id,
  );
  return rows.map(({ feature }) => feature);
}

/** Ended ephemeral sandboxes whose linger is over. */
export async function listExpired(
  database: Database,
  limit: number,
): Promise<{ id: string; orgId: string }[]> {
  const rows = await database.query<{ id: string; org_id: string }>(
    `SELECT id, org_id FROM sandbox.sandboxes
     WHERE expires_at <= now() AND destroyed_at IS NULL ORDER BY expires_at LIMIT $1::int`,
    limit,
  );
  return rows.map(({ id, org_id }) => ({ id, orgId: org_id }));
}

/** Milliseconds until the next ephemeral sandbox that has ended is to go; null: none is. */
export async function nextExpiry(database: Database): Promise<number | null> {
  const [row] = await database.query<{ ms: number | null }>(
    `SELECT (extract(epoch FROM min(expires_at) - clock_timestamp()) * 1000)::float8 AS ms
     FROM sandbox.sandboxes WHERE expires_at IS NOT NULL AND destroyed_at IS NULL`,
  );
  return row?.ms ?? null;
}
