import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { traceText } from "../../../runtime/tracing/spans.ts";
import type { Memory } from "../domain/idempotency.ts";
import type { SandboxSpec } from "../domain/spec.ts";
import { admitRun, LEASE, sandboxEvent } from "./fragments.ts";
import { remember } from "./idempotency.ts";
import { HAS_VOLUMES, MOUNTED, VOLUMES } from "./mounted-volumes.ts";
import { hasRoom, isWithinSize, limitsOf, mayRun } from "./quotas.ts";
import { columns, type KeptSandbox, toKeptSandbox } from "./rows.ts";

/** A sandbox to be made. */
export interface NewSandbox {
  id: string;
  orgId: string;
  name: string;
  slug: string;
  spec: SandboxSpec;
  requires: string[];
  sealed: Uint8Array | null;
  start: boolean;
  /** The volumes that it takes something from, by name. */
  volumes: string[];
}

// What is asked for, as `rowOf` writes it.
const ASKED = `
asked AS MATERIALIZED (
  SELECT a.*, (a.spec->'lifecycle'->>'ephemeral')::boolean AS ephemeral
  FROM jsonb_to_recordset($2::jsonb) AS a (id uuid, name text, slug text, start boolean, spec jsonb, requires text[],
    sealed text, actor jsonb, key text, hash text, trace text)
),
wanted AS (
  SELECT count(*) AS total, count(*) FILTER (WHERE start AND ephemeral) AS ephemeral,
         count(*) FILTER (WHERE start AND NOT ephemeral) AS persistent
  FROM asked
)`;

// The lease decides in the admitting statement: a start needs a living orchestrator whose engine
// honours the spec, a plain create only an engine that does, or none seen so far.
const ADMITTED = `CASE WHEN a.start THEN EXISTS (SELECT FROM lease WHERE alive AND a.requires <@ features)
  ELSE NOT EXISTS (SELECT FROM lease WHERE NOT a.requires <@ features) END AND ${isWithinSize("a.spec")}`;

const more = (kind: string) =>
  `CASE WHEN excluded.${kind} > 0 THEN p.${kind} + excluded.${kind} ELSE 0 END`;

// The first sandbox of an organization makes its places.
const takePlaces = (condition: string) => `
taken AS (
  INSERT INTO sandbox.places AS p (org_id, total_sandboxes, ephemeral_running, persistent_running)
  SELECT $1::uuid, w.total, w.ephemeral, w.persistent FROM wanted w
  WHERE NOT EXISTS (SELECT FROM asked a WHERE NOT (${ADMITTED})) AND ${condition} AND ${hasRoom("w.total")}
    AND (w.ephemeral + w.persistent = 0 OR ${mayRun("w.ephemeral", "w.persistent")})
  ON CONFLICT (org_id) DO UPDATE
  SET total_sandboxes = p.total_sandboxes + excluded.total_sandboxes,
      ephemeral_running = p.ephemeral_running + excluded.ephemeral_running,
      persistent_running = p.persistent_running + excluded.persistent_running
  WHERE ${hasRoom("p.total_sandboxes + excluded.total_sandboxes")}
    AND (excluded.ephemeral_running + excluded.persistent_running = 0
      OR ${mayRun(more("ephemeral_running"), more("persistent_running"))})
  RETURNING p.org_id
)`;

const OF_ASKED = "made JOIN asked a ON a.id = made.id";

const create = (take: string, mounted: string) => `
WITH ${LEASE}, ${limitsOf("$1::uuid")}, ${ASKED}, ${take},
made AS (
  INSERT INTO sandbox.sandboxes
    (id, org_id, name, slug, status, status_reason, spec, requires, ephemeral, generation, created_at)
  SELECT a.id, taken.org_id, a.name, a.slug,
         CASE WHEN a.start THEN 'starting' ELSE 'created' END, CASE WHEN a.start THEN 'scheduling' END,
         a.spec, a.requires, a.ephemeral, a.start::int, clock_timestamp()
  FROM taken, asked a
  RETURNING *
),
run AS (${admitRun("made", "made.created_at", "made.created_at", `${OF_ASKED} WHERE a.start`, "a.trace")}),
seal AS (
  INSERT INTO sandbox.sealed_specs (sandbox_id, sealed)
  SELECT made.id, decode(a.sealed, 'base64') FROM ${OF_ASKED} WHERE a.sealed IS NOT NULL
)${mounted}
SELECT json_agg(r)::text AS rows FROM (
  SELECT ${columns("made")},
         ${sandboxEvent("sandbox_created", "made", "a.actor", "made.created_at")} AS created,
         (SELECT ${sandboxEvent("sandbox_started", "made", "a.actor", "run.admitted_at + interval '1 microsecond'")}
          FROM run WHERE run.sandbox_id = made.id) AS started,
         ${remember({ kind: "sandbox", verb: "create" }, "made", "a.key", "decode(a.hash, 'hex')")}
  FROM ${OF_ASKED}
) r`;

// What mounts nothing pays nothing for volumes.
const CREATE = create(takePlaces("true"), "");
const CREATE_MOUNTING = create(`${VOLUMES}, ${takePlaces(HAS_VOLUMES)}`, `, ${MOUNTED}`);

/** A new sandbox, and its row of `asked` as JSON. */
export interface Asked {
  make: NewSandbox;
  row: string;
}

export function rowOf(make: NewSandbox, actor: Actor, memory: Memory | undefined): string {
  const { id, name, slug, start, spec, requires, sealed } = make;
  return JSON.stringify({
    ...{ id, name, slug, start, spec, requires, actor },
    sealed: sealed && Buffer.from(sealed).toString("base64"),
    key: memory?.key ?? null,
    hash: memory ? Buffer.from(memory.requestHash).toString("hex") : null,
    trace: traceText(),
  });
}

/** In the order of `asked`; none is made where a lease, a quota or the lack of a volume refuses one. */
export async function insertSandboxes(
  database: Database,
  asked: readonly Asked[],
  volumes: readonly string[],
) {
  const [orgId = null] = asked.map(({ make }) => make.orgId);
  const [made] = await database.query<{ rows: string | null }>(
    volumes.length > 0 ? CREATE_MOUNTING : CREATE,
    orgId,
    `[${asked.map(({ row }) => row).join()}]`,
    ...(volumes.length > 0 ? [volumes] : []),
  );
  const rows: KeptSandbox[] = made?.rows ? JSON.parse(made.rows) : [];
  const byId = new Map(rows.map((row) => [row.id, toKeptSandbox(row)]));
  return asked.map(({ make }) => byId.get(make.id));
}
