import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Static } from "typebox";
import type {
  OpenedFile,
  ReadFileRequestSchema,
  ReadFileResponse,
} from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { contentChanged, deadlineExceeded, rangeRefused } from "../../errors.ts";
import {
  isOther,
  isSame,
  isUnchanged,
  lastModified,
  type Validators,
} from "../../http/conditions.ts";
import { logBrokenOff } from "../../http/log-requests.ts";
import { type ByteRange, rangeOf } from "../../http/ranges.ts";
import { requestReader } from "../../http/read-request.ts";
import type { Route } from "../../http/route.ts";
import { sendChunks, type Transfer } from "../../http/transfers.ts";
import { callDuring, type FileDeps, firstOf } from "./file-calls.ts";
import { readFile } from "./file-operations.ts";
import { decodePath } from "./path-header.ts";
import type { ReadHeaders } from "./schema/file.ts";
import { timeOf } from "./translate/file.ts";

/** A file that is open, and its bytes as they come. */
interface Source {
  file: OpenedFile;
  validators: Validators;
  messages: AsyncIterator<ReadFileResponse>;
}

/** `GET …/files/content`: what is wrong before the first byte is answered as ever, and then only by breaking off. */
export function downloadRoute(deps: FileDeps): Route {
  const read = requestReader(readFile);
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { params, headers } = read(request, reply);
    const target = {
      volumeId: params.id.toLowerCase(),
      path: decodePath(headers["x-msb-file-path"]),
    };
    const transfer = deps.transfers.begin(request, reply, deadlineExceeded);
    const open = (range: ByteRange | undefined) =>
      openFile(deps, request, transfer, { ...target, ...range });
    try {
      const isHead = request.method === "HEAD";
      await send(reply, transfer, headers, isHead, open);
    } catch (err) {
      if (!reply.sent) throw transfer.reasonOf(err);
      if (!transfer.signal.aborted) logBrokenOff(request, err, "a file broke off on its way out");
    } finally {
      transfer.end();
    }
    return reply;
  };
  return { method: "GET", path: "/v1/volumes/{id}/files/content", operation: readFile, answer };
}

async function openFile(
  { files, rpcTimeoutMs }: FileDeps,
  { caller }: FastifyRequest,
  transfer: Transfer,
  message: MessageInitShape<typeof ReadFileRequestSchema>,
): Promise<Source> {
  const stream = files.readFile(message, callDuring(transfer, caller));
  const messages = stream[Symbol.asyncIterator]();
  const { value } = await firstOf(messages, transfer, rpcTimeoutMs);
  if (value?.part.case !== "opened") throw new Error("a file began with something else");
  const file: OpenedFile = value.part.value;
  const modifiedMs = file.info?.modifiedAt ? timeOf(file.info.modifiedAt) : Number.NaN;
  return { file, validators: { etag: `"${file.version}"`, modifiedMs }, messages };
}

/** The range that is asked for is opened at once; whether it may be sent is known then. */
async function send(
  reply: FastifyReply,
  transfer: Transfer,
  headers: Static<typeof ReadHeaders>,
  isHead: boolean,
  open: (range: ByteRange | undefined) => Promise<Source>,
): Promise<void> {
  // A range is of what GET sends.
  let range = isHead ? undefined : rangeOf(headers.Range);
  let source = await open(range);
  if (isOther(headers, source.validators)) throw contentChanged();
  if (isUnchanged(headers, source.validators)) return sendUnchanged(reply, source);
  if (range && !(isSame(headers, source.validators) && isSayable(range, source.file))) {
    range = undefined;
    source = await open(undefined);
  }
  const { offset, length, info } = source.file;
  const size = info?.size ?? 0n;
  if (range && length === 0n) throw rangeRefused(size);
  const part = { "content-range": `bytes ${offset}-${offset + length - 1n}/${size}` };
  const head = { ...headersOf(source), ...(range ? part : {}), "content-length": String(length) };
  const content = isHead ? [] : contentOf(source);
  await sendChunks(reply, { status: range ? 206 : 200, headers: head }, content, transfer);
}

// The last bytes of an empty file are all of it, which no Content-Range can say.
function isSayable(range: ByteRange, { info }: OpenedFile): boolean {
  return info?.size !== 0n || !("last" in range && range.last > 0n);
}

function sendUnchanged(reply: FastifyReply, source: Source): void {
  const { "content-type": _, ...headers } = headersOf(source);
  reply.code(304).headers(headers).send();
}

function headersOf({ validators }: Source): Record<string, string> {
  return {
    "accept-ranges": "bytes",
    "cache-control": "private, no-cache, no-transform",
    // Whatever it is, a browser does not run it as a page of ours.
    "content-disposition": "attachment",
    "content-type": "application/octet-stream",
    "x-content-type-options": "nosniff",
    etag: validators.etag,
    ...lastModified(validators),
  };
}

/** @throws Error where there is more, or less, than was promised */
async function* contentOf({ file, messages }: Source): AsyncGenerator<Uint8Array> {
  let left = file.length;
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    const { part } = next.value;
    if (part.case !== "data") throw new Error("a file goes on with something else");
    left -= BigInt(part.value.length);
    if (left < 0n) throw new Error("a file goes on for longer than it said");
    yield part.value;
  }
  if (left > 0n) throw new Error("a file ended before it should");
}
