import type { Sandbox, Status, StatusReason } from "../domain/sandbox.ts";
import type { SandboxSpec } from "../domain/spec.ts";

/** A row of sandbox.sandboxes as `columns` selects it. */
export interface SandboxRow<Spec = SandboxSpec> {
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
  spec: Spec;
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

/** The columns of a SandboxRow, of a table or CTE of this name. */
export function columns(from: string): string {
  return columnNames.map((column) => `${from}.${column}`).join(", ");
}

/** The same with no spec where `isLeftOut` holds, a condition in SQL. */
export function columnsWithout(isLeftOut: string, from: string): string {
  const names = columnNames.filter((column) => column !== "spec");
  const spec = `CASE WHEN ${isLeftOut} THEN NULL ELSE ${from}.spec END AS spec`;
  return [...names.map((column) => `${from}.${column}`), spec].join(", ");
}

export function toSandbox<Spec>(row: SandboxRow<Spec>): Omit<Sandbox, "spec"> & { spec: Spec } {
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
    spec: row.spec,
  };
}

/** A row as JSON: timestamps are text there. */
export type KeptSandbox<Spec = SandboxSpec> = Omit<SandboxRow<Spec>, Times> &
  Record<"created_at", string> &
  Record<"started_at" | "stopped_at", string | null>;
type Times = "created_at" | "started_at" | "stopped_at";

/** SQL of a KeptSandbox of the row `of`. */
export function keptSandbox(of: string): string {
  return `jsonb_build_object(${columnNames.map((column) => `'${column}', ${of}.${column}`).join(", ")})`;
}

export function toKeptSandbox<Spec>(
  kept: KeptSandbox<Spec>,
): Omit<Sandbox, "spec"> & { spec: Spec } {
  const date = (text: string | null) => (text === null ? null : new Date(text));
  return toSandbox({
    ...kept,
    created_at: new Date(kept.created_at),
    started_at: date(kept.started_at),
    stopped_at: date(kept.stopped_at),
  });
}
