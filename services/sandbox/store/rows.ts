import { interned } from "../../../runtime/interned.ts";
import type { Sandbox, Status, StatusReason } from "../domain/sandbox.ts";
import type { SandboxSpec } from "../domain/spec.ts";

/** A row of sandbox.sandboxes as `columns` selects it. */
export interface SandboxRow {
  id: string;
  org_id: string;
  name: string;
  slug: string;
  status: Status;
  status_reason: StatusReason | null;
  ephemeral: boolean;
  generation: number;
  created_at: Date;
  started_at: Date | null;
  stopped_at: Date | null;
  last_failure_message: string | null;
  /** JSON. */
  spec: string;
}

const columnNames = [
  "id",
  "org_id",
  "name",
  "slug",
  "status",
  "status_reason",
  "ephemeral",
  "generation",
  "created_at",
  "started_at",
  "stopped_at",
  "last_failure_message",
  "spec",
] as const satisfies (keyof SandboxRow)[];

/** What a SandboxRow is made of, of a table or CTE of this name. */
export function parts(from: string): string {
  return columnNames.map((column) => `${from}.${column}`).join(", ");
}

/** The columns of a SandboxRow, of a table or CTE that has its parts. */
export function columns(from: string): string {
  return `${parts(from)}::text`;
}

// Reading a spec costs more than all the rest of a row, and many sandboxes have the same one.
const specOf = interned<SandboxSpec>((text) => JSON.parse(text));

export function toSandbox(row: SandboxRow): Sandbox {
  return withSpec(row, specOf(row.spec));
}

function withSpec(row: Omit<SandboxRow, "spec">, spec: SandboxSpec): Sandbox {
  return {
    id: row.id,
    orgId: row.org_id,
    name: row.name,
    slug: row.slug,
    status: row.status,
    statusReason: row.status_reason,
    ephemeral: row.ephemeral,
    generation: row.generation,
    createdAt: row.created_at,
    startedAt: row.started_at,
    stoppedAt: row.stopped_at,
    lastFailureMessage: row.last_failure_message,
    spec,
  };
}

/** A row as `jsonb_build_object` keeps it in a record: timestamps are text there. */
export type KeptSandbox = Omit<SandboxRow, Times | "spec"> &
  Record<"created_at", string> &
  Record<"started_at" | "stopped_at", string | null> & { spec: SandboxSpec };
type Times = "created_at" | "started_at" | "stopped_at";

/** SQL of a KeptSandbox of the row `of`. */
export function keptSandbox(of: string): string {
  return `jsonb_build_object(${columnNames.map((column) => `'${column}', ${of}.${column}`).join(", ")})`;
}

export function toKeptSandbox(kept: KeptSandbox): Sandbox {
  const date = (text: string | null) => (text === null ? null : new Date(text));
  const times = {
    created_at: new Date(kept.created_at),
    started_at: date(kept.started_at),
    stopped_at: date(kept.stopped_at),
  };
  return withSpec({ ...kept, ...times }, kept.spec);
}
