import type { Volume, VolumeKind, VolumeStatus } from "../domain/volume.ts";

/** A row of sandbox.volumes as `volumeColumns` select it. */
export interface VolumeRow {
  id: string;
  org_id: string;
  kind: VolumeKind;
  name: string | null;
  status: VolumeStatus;
  capacity_gib: number | null;
  /** Digits: JSON has no numbers so large. */
  used_bytes: string | null;
  labels: Record<string, string>;
  created_at: Date;
  updated_at: Date;
}

/** Each column with its SQL, of a table or CTE of the name `of`. */
function columnsOf(of: string): [keyof VolumeRow, string][] {
  const plain = ["id", "org_id", "kind", "name", "capacity_gib", "labels"] as const;
  return [
    ...plain.map((column): [keyof VolumeRow, string] => [column, `${of}.${column}`]),
    ["status", `CASE WHEN ${of}.deleted_at IS NULL THEN 'active' ELSE 'deleting' END`],
    ["used_bytes", `${of}.used_bytes::text`],
    ["created_at", `${of}.created_at`],
    ["updated_at", `${of}.updated_at`],
  ];
}

export function volumeColumns(of: string): string {
  return columnsOf(of)
    .map(([column, sql]) => `${sql} AS ${column}`)
    .join(", ");
}

export function toVolume(row: VolumeRow): Volume {
  return {
    id: row.id,
    orgId: row.org_id,
    kind: row.kind,
    name: row.name,
    status: row.status,
    capacityGib: row.capacity_gib,
    usedBytes: row.used_bytes === null ? null : BigInt(row.used_bytes),
    labels: row.labels,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}

/** A row as a record keeps it: timestamps are text there. */
export type KeptVolume = Omit<VolumeRow, "created_at" | "updated_at"> &
  Record<"created_at" | "updated_at", string>;

/** SQL of a KeptVolume of the row `of`. */
export function keptVolume(of: string): string {
  const pairs = columnsOf(of).map(([column, sql]) => `'${column}', ${sql}`);
  return `jsonb_build_object(${pairs.join(", ")})`;
}

export function toKeptVolume(kept: KeptVolume): Volume {
  const created_at = new Date(kept.created_at);
  return toVolume({ ...kept, created_at, updated_at: new Date(kept.updated_at) });
}
