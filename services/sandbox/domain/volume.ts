export const VOLUME_KINDS = ["host", "managed"] as const;
export type VolumeKind = (typeof VOLUME_KINDS)[number];

export const VOLUME_STATUSES = ["active", "deleting"] as const;
export type VolumeStatus = (typeof VOLUME_STATUSES)[number];

/** A volume as stored; see proto/sandbox/v1/volume.proto for what each field means. */
export interface Volume {
  id: string;
  orgId: string;
  kind: VolumeKind;
  /** Null for the host volume alone. */
  name: string | null;
  status: VolumeStatus;
  capacityGib: number | null;
  usedBytes: bigint | null;
  labels: Record<string, string>;
  createdAt: Date;
  updatedAt: Date;
}
