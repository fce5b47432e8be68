import type { Database } from "../../../prisma/database.ts";
import { Conditions, type Placed, slice, toUs } from "../../../prisma/pages.ts";
import type { PagePoint, Slice } from "../../../runtime/pages.ts";
import type { Sandbox, Status } from "../domain/sandbox.ts";
import { columns, type SandboxRow, toSandbox } from "./rows.ts";

export interface PageQuery {
  orgId: string;
  limit: number;
  after: PagePoint | null;
  labels: Record<string, string> | null;
  statuses: Status[] | null;
}

/** Newest first. */
export async function listSandboxes(
  database: Database,
  { orgId, limit, after, labels, statuses }: PageQuery,
): Promise<Slice<Sandbox>> {
  const where = new Conditions();
  where.add(`s.org_id = ${where.place(orgId)}::uuid`);
  where.add("s.destroyed_at IS NULL");
  const most = where.place(limit + 1);
  where.behind(after, "s.created_at", "s.id");
  if (labels) where.add(`s.spec->'labels' @> ${where.place(JSON.stringify(labels))}::jsonb`);
  if (statuses) where.add(`s.status = ANY(${where.place(statuses)}::text[])`);
  const rows = await database.query<SandboxRow & Placed>(
    `SELECT ${columns("s")}, ${toUs("s.created_at")} AS us
     FROM sandbox.sandboxes s WHERE ${where.sql}
     ORDER BY s.created_at DESC, s.id DESC LIMIT ${most}::int`,
    ...where.values,
  );
  const { rows: page, next } = slice(rows, limit);
  return { rows: page.map(toSandbox), next };
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
