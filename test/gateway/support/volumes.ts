import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type FileInfoSchema,
  FileKind,
} from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import {
  VolumeKind,
  type VolumeSchema,
  VolumeStatus,
} from "../../../proto/gen/sandbox/v1/volume_pb.ts";
import { ORG_ID } from "./fake-services.ts";

export const VOLUME_ID = "019a9f30-4c1e-7d2a-9e55-6b8f0a1c2d3e";
export const FILES = `/v1/volumes/${VOLUME_ID}/files`;
export const MADE = new Date("2026-11-21T08:20:11.730Z");

/** A path as it travels in a header. */
export const pathHeader = (path: string) => ({
  "x-msb-file-path": Buffer.from(path).toString("base64url"),
});

export function volumeMessage(
  given: MessageInitShape<typeof VolumeSchema> = {},
): MessageInitShape<typeof VolumeSchema> {
  return {
    id: VOLUME_ID,
    orgId: ORG_ID,
    kind: VolumeKind.MANAGED,
    name: "datasets",
    status: VolumeStatus.ACTIVE,
    labels: { team: "build" },
    createdAt: timestampFromDate(MADE),
    updatedAt: timestampFromDate(MADE),
    ...given,
  };
}

export function fileMessage(
  given: MessageInitShape<typeof FileInfoSchema> = {},
): MessageInitShape<typeof FileInfoSchema> {
  return {
    path: "/data/notes.txt",
    kind: FileKind.FILE,
    size: 11n,
    mode: 0o640,
    uid: 1000,
    gid: 100,
    accessedAt: timestampFromDate(MADE),
    modifiedAt: timestampFromDate(MADE),
    ...given,
  };
}
