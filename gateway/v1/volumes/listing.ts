import type { FastifyReply, FastifyRequest } from "fastify";
import type { ListFilesResponse } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { deadlineExceeded } from "../../errors.ts";
import { JSON_TYPE } from "../../http/body.ts";
import { logBrokenOff } from "../../http/log-requests.ts";
import { requestReader } from "../../http/read-request.ts";
import type { Route } from "../../http/route.ts";
import { sendChunks } from "../../http/transfers.ts";
import { callDuring, type FileDeps, firstOf } from "./file-calls.ts";
import { listFiles } from "./file-operations.ts";
import { decodePath } from "./path-header.ts";
import { publicFile } from "./translate/file.ts";

/** `GET …/files`: written as it is read, so that a huge directory takes no memory; what goes wrong on the way breaks it off. */
export function listingRoute({ files, transfers, rpcTimeoutMs }: FileDeps): Route {
  const read = requestReader(listFiles);
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { params, headers } = read(request, reply);
    const message = {
      volumeId: params.id.toLowerCase(),
      path: decodePath(headers["x-msb-file-path"]),
    };
    const transfer = transfers.begin(request, reply, deadlineExceeded);
    const stream = files.listFiles(message, callDuring(transfer, request.caller));
    const messages = stream[Symbol.asyncIterator]();
    try {
      const first = await firstOf(messages, transfer, rpcTimeoutMs);
      const text = request.method === "HEAD" ? [] : textOf(first, messages);
      await sendChunks(
        reply,
        { status: 200, headers: { "content-type": JSON_TYPE } },
        text,
        transfer,
      );
    } catch (err) {
      if (!reply.sent) throw transfer.reasonOf(err);
      if (!transfer.signal.aborted) logBrokenOff(request, err, "a list of files broke off");
    } finally {
      transfer.end();
    }
    return reply;
  };
  return { method: "GET", path: "/v1/volumes/{id}/files", operation: listFiles, answer };
}

async function* textOf(
  first: IteratorResult<ListFilesResponse>,
  rest: AsyncIterator<ListFilesResponse>,
): AsyncGenerator<string> {
  let before = '{"entries":[';
  for (let next = first; !next.done; next = await rest.next()) {
    const { entries } = next.value;
    if (entries.length === 0) continue;
    yield before + entries.map((entry) => JSON.stringify(publicFile(entry))).join(",");
    before = ",";
  }
  yield before === "," ? "]}" : `${before}]}`;
}
