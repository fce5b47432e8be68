import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  type FileInfo,
  FileKind,
} from "../../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { nameOf } from "../../values.ts";
import type { FileInfo as PublicFileInfo } from "../schema/file.ts";

const KINDS = { file: FileKind.FILE, directory: FileKind.DIRECTORY } as const;
// What RFC 3339 can say: the years 1 to 9999.
const FIRST_MS = -62_135_596_800_000;
const LAST_MS = 253_402_300_799_999;

/** @throws Error on a message without what every file has */
export function publicFile(info: FileInfo | undefined): PublicFileInfo {
  if (!info) throw new Error("the answer holds no file");
  return {
    path: info.path,
    kind: nameOf(KINDS, info.kind),
    size: Number(info.size),
    mode: info.mode,
    uid: info.uid,
    gid: info.gid,
    readonly: info.readonly,
    accessed_at: fileTime(info.accessedAt),
    modified_at: fileTime(info.modifiedAt),
    created_at: fileTime(info.createdAt),
  };
}

// Whoever may write a file may give it any time.
function fileTime(timestamp: Timestamp | undefined): string | null {
  if (!timestamp) return null;
  const ms = timeOf(timestamp);
  return new Date(Math.min(Math.max(ms, FIRST_MS), LAST_MS)).toISOString();
}

/** In Unix milliseconds. */
export function timeOf({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1_000 + Math.trunc(nanos / 1_000_000);
}
