import type { Database } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import type { Sandbox } from "../domain/sandbox.ts";
import type { SandboxSpec } from "../domain/spec.ts";
import { LEASE, sandboxEvent } from "./fragments.ts";
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
}

// The lease decides in the admitting statement: a start needs a living orchestrator whose engine
// honours the spec, a plain create only an engine that does, or none seen so far.
const CREATE = `
WITH ${LEASE},
made AS (
  INSERT INTO sandbox.sandboxes
    (id, org_id, name, slug, status, status_reason, spec, requires, ephemeral, generation, created_at)
  SELECT $1::uuid, $2::uuid, $3, $4,
         CASE WHEN $5 THEN 'starting' ELSE 'created' END, CASE WHEN $5 THEN 'scheduling' END,
         $6::jsonb, $7::text[], ($6::jsonb->'lifecycle'->>'ephemeral')::boolean,
         CASE WHEN $5 THEN 1 ELSE 0 END, clock_timestamp()
  WHERE CASE WHEN $5::boolean THEN EXISTS (SELECT FROM lease WHERE alive AND $7::text[] <@ features)
             ELSE NOT EXISTS (SELECT FROM lease WHERE NOT $7::text[] <@ features) END
  RETURNING *
),
run AS (
  INSERT INTO sandbox.runs
    (sandbox_id, generation, org_id, vcpus, memory_mib, disk_size_mib, ephemeral, limit_secs,
     desired, phase, admitted_at, due_at)
  SELECT id, 1, org_id, (spec->'resources'->>'vcpus')::int, (spec->'resources'->>'memoryMib')::int,
         (spec->'resources'->>'diskSizeMib')::int, ephemeral, sandbox.limit_secs(spec),
         'running', 'starting', created_at, created_at
  FROM made WHERE $5
  RETURNING admitted_at
),
seal AS (
  INSERT INTO sandbox.sealed_specs (sandbox_id, sealed) SELECT id, $8::bytea FROM made WHERE $8::bytea IS NOT NULL
)
SELECT ${columns("made")},
       ${sandboxEvent("sandbox_created", "made", "$9", "made.created_at")},
       (SELECT ${sandboxEvent("sandbox_started", "made", "$9", "run.admitted_at + interval '1 microsecond'")} FROM run)
FROM made`;

/**
 * Makes a sandbox, admits its start where asked, and writes its events, all or nothing.
 * @returns undefined where the engine's lease refused it
 * @throws a unique violation of sandboxes_name_key or sandboxes_slug_key
 */
export async function createSandbox(
  database: Database,
  make: NewSandbox,
  actor: Actor,
): Promise<Sandbox | undefined> {
  const [row] = await database.query<SandboxRow>(
    CREATE,
    make.id,
    make.orgId,
    make.name,
    make.slug,
    make.start,
    JSON.stringify(make.spec),
    make.requires,
    make.sealed,
    JSON.stringify(actor),
  );
  return row && toSandbox(row);
}
