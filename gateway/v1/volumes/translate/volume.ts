import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type Volume,
  VolumeKind,
  VolumeStatus,
} from "../../../../proto/gen/sandbox/v1/volume_pb.ts";
import type {
  CreateVolumeRequestSchema,
  UpdateVolumeRequestSchema,
} from "../../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { given, nameOf, toNumber, toTime } from "../../values.ts";
import type {
  CreateVolumeRequest,
  Volume as PublicVolume,
  UpdateVolumeRequest,
} from "../schema/volume.ts";

const KINDS = { host: VolumeKind.HOST, managed: VolumeKind.MANAGED } as const;
const STATUSES = { active: VolumeStatus.ACTIVE, deleting: VolumeStatus.DELETING } as const;
const GIB = 2 ** 30;

export function createVolumeMessage({
  name,
  capacity_gib,
  labels,
}: CreateVolumeRequest): MessageInitShape<typeof CreateVolumeRequestSchema> {
  return { name, capacityGib: given(capacity_gib), labels: { values: { ...labels } } };
}

/** Of a capacity absent and null are told apart: null takes it away. */
export function updateVolumeMessage(
  id: string,
  { capacity_gib, labels }: UpdateVolumeRequest,
): MessageInitShape<typeof UpdateVolumeRequestSchema> {
  return {
    id,
    capacity: capacity_gib === undefined ? undefined : { gib: given(capacity_gib) },
    labels: labels ? { values: { ...labels } } : undefined,
  };
}

/** @throws Error on a message without what every volume has */
export function publicVolume(volume: Volume | undefined): PublicVolume {
  if (!volume) throw new Error("the answer holds no volume");
  const { capacityGib } = volume;
  return {
    id: volume.id,
    kind: nameOf(KINDS, volume.kind),
    name: volume.name ?? null,
    status: nameOf(STATUSES, volume.status),
    storage: "block",
    capacity_bytes: capacityGib === undefined ? null : capacityGib * GIB,
    used_bytes: toNumber(volume.usedBytes),
    labels: { ...volume.labels },
    created_at: toTime(volume.createdAt),
    updated_at: toTime(volume.updatedAt),
  };
}
