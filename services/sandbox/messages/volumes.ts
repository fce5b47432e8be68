import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as pb from "../../../proto/gen/sandbox/v1/volume_pb.ts";
import type * as rpc from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { given } from "../../../runtime/rpc/given.ts";
import type { VolumeChange } from "../domain/change-volume.ts";
import type { CreateVolume } from "../domain/create-volume.ts";
import { VOLUME_KINDS, VOLUME_STATUSES, type Volume } from "../domain/volume.ts";
import type { VolumeMeasurement, VolumeWrite } from "../domain/volume-use.ts";
import { enumCodec } from "./enums.ts";

const kind = enumCodec(pb.VolumeKind, VOLUME_KINDS);
const status = enumCodec(pb.VolumeStatus, VOLUME_STATUSES);

export function volumeToMessage(volume: Volume): pb.Volume {
  return create(pb.VolumeSchema, {
    id: volume.id,
    orgId: volume.orgId,
    kind: kind.toNumber(volume.kind),
    ...given("name", volume.name),
    status: status.toNumber(volume.status),
    ...given("capacityGib", volume.capacityGib),
    ...given("usedBytes", volume.usedBytes),
    labels: volume.labels,
    createdAt: timestampFromDate(volume.createdAt),
    updatedAt: timestampFromDate(volume.updatedAt),
  });
}

export function createVolumeFromMessage(message: rpc.CreateVolumeRequest): CreateVolume {
  const { name, capacityGib = null, labels } = message;
  return { name, capacityGib, labels: labels?.values ?? {} };
}

export function updateVolumeFromMessage({
  capacity,
  labels,
}: rpc.UpdateVolumeRequest): VolumeChange {
  return { capacityGib: capacity && (capacity.gib ?? null), labels: labels?.values };
}

export function writeFromMessage(message: rpc.ReserveVolumeBytesRequest): VolumeWrite {
  const { writeId, volumeId, bytes } = message;
  return { id: writeId, volumeId, bytes };
}

/** Its time is cut to milliseconds: what was written in the rest of one is taken as not seen yet. */
export function measurementFromMessage(message: rpc.ReportVolumeUseRequest): VolumeMeasurement {
  const { volumeId, usedBytes, measuredAt } = message;
  // The contract requires it.
  return { volumeId, usedBytes, measuredAt: measuredAt ? timestampDate(measuredAt) : new Date() };
}
