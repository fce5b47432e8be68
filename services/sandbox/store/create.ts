import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { traceText } from "../../../runtime/tracing/spans.ts";
import type { Memory } from "../domain/idempotency.ts";
import type { Sandbox } from "../domain/sandbox.ts";
import type { SandboxSpec } from "../domain/spec.ts";
import { admitRun, LEASE, sandboxEvent } from "./fragments.ts";
import { memoryValues, remember } from "./idempotency.ts";
import { HAS_VOLUMES, MOUNTED, VOLUMES } from "./mounted-volumes.ts";
import { hasRoom, isWithinSize, limitsOf, mayRun } from "./quotas.ts";
import { columns, type SandboxRow, toSandbox } from "./rows.ts";

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

// The first sandbox of an organization makes its places. `asked` is what this one takes.
const takePlaces = (condition: string) => `
taken AS (
  INSERT INTO sandbox.places AS p (org_id, total_sandboxes, ephemeral_running, persistent_running)
  SELECT $2::uuid, 1, asked.ephemeral, asked.persistent
  FROM (SELECT ($5 AND ephemeral)::int AS ephemeral, ($5 AND NOT ephemeral)::int AS persistent
        FROM (SELECT ($6::jsonb->'lifecycle'->>'ephemeral')::boolean AS ephemeral) kind) asked
  WHERE CASE WHEN $5::boolean THEN EXISTS (SELECT FROM lease WHERE alive AND $7::text[] <@ features)
             ELSE NOT EXISTS (SELECT FROM lease WHERE NOT $7::text[] <@ features) END
    AND ${condition} AND ${isWithinSize("$6::jsonb")} AND ${hasRoom("1")}
    AND (NOT $5 OR ${mayRun("asked.ephemeral", "asked.persistent")})
  ON CONFLICT (org_id) DO UPDATE
  SET total_sandboxes = p.total_sandboxes + 1,
      ephemeral_running = p.ephemeral_running + excluded.ephemeral_running,
      persistent_running = p.persistent_running + excluded.persistent_running
  WHERE ${hasRoom("p.total_sandboxes + 1")}
    AND (NOT $5 OR ${mayRun(
      "excluded.ephemeral_running * (p.ephemeral_running + 1)",
      "excluded.persistent_running * (p.persistent_running + 1)",
    )})
  RETURNING p.org_id
)`;

// The lease decides in the admitting statement: a start needs a living orchestrator whose engine
// honours the spec, a plain create only an engine that does, or none seen so far.
const create = (take: string, mounted: string, trace: string) => `
WITH ${LEASE}, ${limitsOf("$2::uuid")}, ${take},
made AS (
  INSERT INTO sandbox.sandboxes
    (id, org_id, name, slug, status, status_reason, spec, requires, ephemeral, generation, created_at)
  SELECT $1::uuid, taken.org_id, $3, $4,
         CASE WHEN $5 THEN 'starting' ELSE 'created' END, CASE WHEN $5 THEN 'scheduling' END,
         $6::jsonb, $7::text[], ($6::jsonb->'lifecycle'->>'ephemeral')::boolean,
         CASE WHEN $5 THEN 1 ELSE 0 END, clock_timestamp()
  FROM taken
  RETURNING *
),
run AS (${admitRun("made", "made.created_at", "made.created_at", "made WHERE $5", trace)}),
seal AS (
  INSERT INTO sandbox.sealed_specs (sandbox_id, sealed) SELECT id, $8::bytea FROM made WHERE $8::bytea IS NOT NULL
)${mounted}
SELECT ${columns("made")},
       ${sandboxEvent("sandbox_created", "made", "$9", "made.created_at")},
       (SELECT ${sandboxEvent("sandbox_started", "made", "$9", "run.admitted_at + interval '1 microsecond'")} FROM run),
       ${remember({ kind: "sandbox", verb: "create" }, "made", "$10", "$11")}
FROM made`;

// What mounts nothing pays nothing for volumes.
const CREATE = create(takePlaces("true"), "", "$12");
const CREATE_MOUNTING = create(`${VOLUMES}, ${takePlaces(HAS_VOLUMES)}`, `, ${MOUNTED}`, "$13");

/**
 * Makes a sandbox, admits its start where asked, takes its places and writes its events, all or nothing.
 * @returns undefined where the engine's lease, a quota or the lack of a volume refused it
 * @throws a unique violation of sandboxes_name_key or sandboxes_slug_key, or what `isOnRecord` knows
 */
export async function createSandbox(
  database: Database,
  make: NewSandbox,
  actor: Actor,
  memory?: Memory,
): Promise<Sandbox | undefined> {
  const mounts = make.volumes.length > 0;
  const [row] = await database.query<SandboxRow>(
    mounts ? CREATE_MOUNTING : CREATE,
    make.id,
    make.orgId,
    make.name,
    make.slug,
    make.start,
    JSON.stringify(make.spec),
    make.requires,
    make.sealed,
    JSON.stringify(actor),
    ...memoryValues(memory),
    ...(mounts ? [make.volumes] : []),
    traceText(),
  );
  return row && toSandbox(row);
}
