import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type FileInfoSchema,
  FileKind,
  type ReadFileRequest,
  type ReadFileResponseSchema,
  type WriteTarget as WriteTargetMessage,
} from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { given } from "../../runtime/rpc/given.ts";
import type { FileKey } from "./domain/files/read-files.ts";
import type { WriteTarget } from "./domain/files/write-file.ts";
import type { ByteRange, FileInfo, OpenFile } from "./engines/volume-store.ts";

const KINDS = { file: FileKind.FILE, directory: FileKind.DIRECTORY } as const;
const ANY_WRITES = 0o222;

export function infoToMessage(info: FileInfo): MessageInitShape<typeof FileInfoSchema> {
  const { path, kind, size, mode, uid, gid, accessedAt, modifiedAt, createdAt } = info;
  return {
    path,
    kind: KINDS[kind],
    size,
    mode,
    uid,
    gid,
    readonly: (mode & ANY_WRITES) === 0,
    accessedAt: timestampFromDate(accessedAt),
    modifiedAt: timestampFromDate(modifiedAt),
    ...given("createdAt", createdAt && timestampFromDate(createdAt)),
  };
}

export function openedToMessage({
  info,
  version,
  offset,
  length,
}: OpenFile): MessageInitShape<typeof ReadFileResponseSchema> {
  const value = { info: infoToMessage(info), version, offset, length };
  return { part: { case: "opened", value } };
}

export function rangeFromMessage(request: ReadFileRequest): FileKey & { range: ByteRange } {
  const { volumeId, path, offset, length, last } = request;
  const range = last === undefined ? { offset, length: length ?? null } : { last };
  return { volumeId, path, range };
}

export function targetFromMessage({ volumeId, path, length }: WriteTargetMessage): WriteTarget {
  return { volumeId, path, length: length ?? null };
}
