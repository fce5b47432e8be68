import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { WriteFileRequestSchema } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { deadlineExceeded, invalidRequest } from "../../errors.ts";
import { askForBody } from "../../http/expectations.ts";
import { requestReader } from "../../http/read-request.ts";
import { RequestBody } from "../../http/request-body.ts";
import type { Route } from "../../http/route.ts";
import type { Transfer } from "../../http/transfers.ts";
import { callDuring, type FileDeps } from "./file-calls.ts";
import { writeFile } from "./file-operations.ts";
import { decodePath } from "./path-header.ts";
import { publicFile } from "./translate/file.ts";

type WriteMessage = MessageInitShape<typeof WriteFileRequestSchema>;

const INT64_MAX = 2n ** 63n - 1n;

/** `PUT …/files/content`: the body goes on as it comes, and nothing of it is asked for before the service wants it. */
export function uploadRoute({ files, transfers, pieceBytes }: FileDeps): Route {
  const read = requestReader(writeFile);
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { params, headers } = read(request, reply);
    const target = {
      volumeId: params.id.toLowerCase(),
      path: decodePath(headers["x-msb-file-path"]),
      length: lengthOf(request),
    };
    let late = () => deadlineExceeded();
    const transfer = transfers.begin(request, reply, () => late());
    const body = new RequestBody(request.raw, transfer.signal, pieceBytes);
    late = () => (body.waiting ? bodyLate() : deadlineExceeded());
    const messages = new WriteMessages(target, body, transfer, () => askForBody(request, reply));
    try {
      const { info } = await files.writeFile(messages, callDuring(transfer, request.caller));
      return { metadata: publicFile(info) };
    } catch (error) {
      throw transfer.reasonOf(error);
    } finally {
      transfer.end();
    }
  };
  return { method: "PUT", path: "/v1/volumes/{id}/files/content", operation: writeFile, answer };
}

const UNSUPPORTED: Readonly<Record<string, string>> = {
  "content-range": "is not supported: a file is written as a whole",
  "if-match": "is not supported: a file is written whatever is there",
  "if-none-match": "is not supported: a file is written whatever is there",
  "if-unmodified-since": "is not supported: a file is written whatever is there",
};

/** @throws PublicError (invalid_request) on a body that cannot be a whole file, or is to be written on conditions that nobody keeps */
function lengthOf({ headers }: FastifyRequest): bigint | undefined {
  const faults = Object.entries(UNSUPPORTED)
    .filter(([name]) => headers[name] !== undefined)
    .map(([name, message]) => ({ field: `headers.${name}`, message }));
  const { "content-length": length, "transfer-encoding": coding } = headers;
  if (coding !== undefined && coding.toLowerCase() !== "chunked")
    faults.push({ field: "headers.transfer-encoding", message: "must be chunked" });
  if (length !== undefined && BigInt(length) > INT64_MAX)
    faults.push({ field: "headers.content-length", message: "is too large" });
  if (faults.length > 0) throw invalidRequest(faults);
  // Without either there is no body.
  if (length === undefined) return coding === undefined ? 0n : undefined;
  return BigInt(length);
}

function bodyLate() {
  return invalidRequest([{ field: "body", message: "did not arrive in time" }]);
}

/**
 * The messages of a write. No generator: one that is thrown into when its call is aborted ends, and whoever then asks it for
 * more would take that for the end of the file.
 */
class WriteMessages implements AsyncIterable<WriteMessage>, AsyncIterator<WriteMessage, undefined> {
  readonly #target: WriteMessage;
  readonly #body: RequestBody;
  readonly #transfer: Transfer;
  readonly #ask: () => void;
  #asked = 0;
  #ended: boolean;
  /** Why the call was aborted. */
  #aborted: { reason: unknown } | undefined;

  /** @param ask called when the target was taken, and content is wanted */
  constructor(
    target: { volumeId: string; path: string; length: bigint | undefined },
    body: RequestBody,
    transfer: Transfer,
    ask: () => void,
  ) {
    this.#target = { part: { case: "target", value: target } };
    // One whose length was named is known to be whole by that.
    this.#ended = target.length !== undefined;
    this.#body = body;
    this.#transfer = transfer;
    this.#ask = ask;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async next(): Promise<IteratorResult<WriteMessage, undefined>> {
    if (this.#aborted) throw this.#aborted.reason;
    this.#asked += 1;
    if (this.#asked === 1) return { done: false, value: this.#target };
    if (this.#asked === 2) this.#ask();
    const data = await this.#body.read().catch((error: unknown) => {
      // Aborted first, so that nobody takes it for a fault of the service.
      this.#transfer.cut(error);
      throw new ConnectError("the body broke off", Code.Canceled);
    });
    this.#transfer.moved();
    if (data !== undefined) return { done: false, value: { part: { case: "data", value: data } } };
    return this.#last();
  }

  /**
   * Called when the call was aborted, or its connection broke: what is still asked for after that fails. The transfer is not
   * cut, else a lost connection would look as if this side had ended the call.
   */
  async throw(reason: unknown): Promise<IteratorResult<WriteMessage, undefined>> {
    this.#aborted = { reason };
    throw reason;
  }

  // The end of the stream alone would not say that this was all of it.
  #last(): IteratorResult<WriteMessage, undefined> {
    if (this.#ended) return { done: true, value: undefined };
    this.#ended = true;
    return { done: false, value: { part: { case: "end", value: {} } } };
  }
}
