import { DatabaseError, Pool, type QueryResultRow } from "pg";
import { fromUs, type Placed, slice, toUs } from "../../prisma/pages.ts";
import { actorOf, type Holder, type NewRow, type Row, type Store, takenOf } from "./store.ts";

const COLUMNS =
  "s.id, s.org_id, s.name, s.slug, s.status, s.status_reason, s.ephemeral, s.created_at, s.started_at, s.stopped_at, s.last_failure_message, s.spec";
const HOLDER = `SELECT k.org_id AS "orgId", k.id AS "apiKeyId", k.name AS "apiKeyName"
  FROM organization.api_keys k JOIN organization.organizations o ON o.id = k.org_id
  WHERE k.key_sha256 = $1 AND k.revoked_at IS NULL AND o.suspended_at IS NULL
    AND (k.expires_at IS NULL OR k.expires_at > now())`;
const BY_ID = `SELECT ${COLUMNS} FROM sandbox.sandboxes s WHERE s.id = $2 AND s.org_id = $1 AND s.destroyed_at IS NULL`;
const BY_NAME = `SELECT ${COLUMNS} FROM sandbox.sandboxes s WHERE s.org_id = $1 AND s.name = $2 AND s.destroyed_at IS NULL`;
const pageOf = (condition: string) => `SELECT ${COLUMNS}, ${toUs("s.created_at")} AS us
  FROM sandbox.sandboxes s WHERE s.org_id = $1 AND s.destroyed_at IS NULL ${condition}
  ORDER BY s.created_at DESC, s.id DESC LIMIT $2`;
const FIRST_PAGE = pageOf("");
const NEXT_PAGE = pageOf(`AND (s.created_at, s.id) < (${fromUs("$3")}, $4::uuid)`);
const LIMIT = "(billing.limits($2::uuid)->>'max_sandboxes')::bigint";
// One statement is one commit and one round trip.
const CREATE = `
WITH taken AS (
  INSERT INTO sandbox.places AS p (org_id, total_sandboxes, ephemeral_running, persistent_running)
  SELECT $2::uuid, 1, 0, 0 WHERE coalesce(1 <= ${LIMIT}, true)
  ON CONFLICT (org_id) DO UPDATE SET total_sandboxes = p.total_sandboxes + 1
  WHERE coalesce(p.total_sandboxes + 1 <= ${LIMIT}, true)
  RETURNING p.org_id
),
s AS (
  INSERT INTO sandbox.sandboxes (id, org_id, name, slug, status, spec, requires, ephemeral, created_at)
  SELECT $1::uuid, org_id, $3, $4, 'created', $5::jsonb, '{}', $6, clock_timestamp() FROM taken
  RETURNING *
)
SELECT ${COLUMNS}, organization.append_event(s.org_id, 'sandbox_created', $7::jsonb,
  jsonb_build_object('sandbox_id', s.id, 'name', s.name, 'slug', s.slug), s.created_at)
FROM s`;

/** `pg` as its manual has it: a pool, and statements that are prepared once a connection. */
export class PgStore implements Store {
  readonly #pool: Pool;

  constructor(connectionString: string, max: number) {
    this.#pool = new Pool({ connectionString, max });
  }

  async findHolder(sha256: Buffer): Promise<Holder | undefined> {
    const [holder] = await this.#query<Holder & QueryResultRow>("holder", HOLDER, [sha256]);
    return holder;
  }

  async findById(orgId: string, id: string): Promise<Row | undefined> {
    const [row] = await this.#query<Row & QueryResultRow>("by-id", BY_ID, [orgId, id]);
    return row;
  }

  async findByName(orgId: string, name: string): Promise<Row | undefined> {
    const [row] = await this.#query<Row & QueryResultRow>("by-name", BY_NAME, [orgId, name]);
    return row;
  }

  async list(...[orgId, limit, after]: Parameters<Store["list"]>) {
    const rows = after
      ? await this.#query<Row & Placed>("next-page", NEXT_PAGE, [
          orgId,
          limit + 1,
          after.us,
          after.id,
        ])
      : await this.#query<Row & Placed>("first-page", FIRST_PAGE, [orgId, limit + 1]);
    return slice(rows, limit);
  }

  async create(holder: Holder, { id, name, slug, spec }: NewRow) {
    const { ephemeral } = spec.lifecycle;
    const [text, actor] = [JSON.stringify(spec), JSON.stringify(actorOf(holder))];
    const values = [id, holder.orgId, name, slug, text, ephemeral, actor];
    try {
      const [row] = await this.#query<Row & QueryResultRow>("create", CREATE, values);
      return row ?? "quota";
    } catch (error) {
      const taken = error instanceof DatabaseError ? takenOf(error.constraint) : undefined;
      if (taken) return taken;
      throw error;
    }
  }

  async #query<R extends QueryResultRow>(name: string, text: string, values: unknown[]) {
    return (await this.#pool.query<R>({ name, text, values })).rows;
  }
}
