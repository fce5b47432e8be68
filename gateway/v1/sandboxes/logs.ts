import { type Client, Code, ConnectError, createContextValues } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import type {
  OrchestratorService,
  ReadLogsResponse,
} from "../../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import type { EventStreams } from "../../http/event-streams.ts";
import { logBrokenOff } from "../../http/log-requests.ts";
import { requestReader } from "../../http/read-request.ts";
import type { Route } from "../../http/route.ts";
import { readLogs } from "./operations.ts";
import { eventOf, logsMessage } from "./translate/logs.ts";

export interface LogsDeps {
  orchestrators: Client<typeof OrchestratorService>;
  streams: EventStreams;
  /** How long the answer may take to begin. */
  rpcTimeoutMs: number;
  /** Aborts `cut` when the key of the request is not good any more. @returns what ends that */
  whileGood(request: FastifyRequest, cut: AbortController): () => void;
}

/** `GET …/logs`: what is wrong before the first byte is answered as ever, and then only by breaking off. */
export function logsRoute(deps: LogsDeps): Route {
  const read = requestReader(readLogs);
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { params, query } = read(request, reply);
    const message = logsMessage(params, query, request.headers["last-event-id"]);
    const cut = new AbortController();
    reply.raw.once("close", () => cut.abort());
    const contextValues = createContextValues().set(callerKey, request.caller);
    const messages = deps.orchestrators
      .readLogs(message, { contextValues, signal: cut.signal })
      [Symbol.asyncIterator]();
    await opened(messages, cut, deps.rpcTimeoutMs);
    const release = deps.whileGood(request, cut);
    await deps.streams
      .send(reply, events(request.method === "HEAD" ? undefined : messages), cut)
      .catch((err: unknown) => {
        if (!reply.sent) throw err;
        if (!cut.signal.aborted) logBrokenOff(request, err, "a stream of logs broke off");
      })
      .finally(() => {
        release();
        cut.abort();
      });
    return reply;
  };
  return { method: "GET", path: "/v1/sandboxes/{sandbox_id}/logs", operation: readLogs, answer };
}

// The first message says that the sandbox is there and that its engine answers.
async function opened(
  messages: AsyncIterator<ReadLogsResponse>,
  cut: AbortController,
  timeoutMs: number,
): Promise<void> {
  const late = new ConnectError("the logs did not open in time", Code.DeadlineExceeded);
  const timer = setTimeout(() => cut.abort(late), timeoutMs);
  try {
    const { value } = await messages.next();
    if (value?.event.case !== "opened") throw new Error("the logs began with something else");
  } finally {
    clearTimeout(timer);
  }
}

async function* events(
  messages: AsyncIterator<ReadLogsResponse> | undefined,
): AsyncGenerator<string> {
  for (let next = await messages?.next(); next && !next.done; next = await messages?.next()) {
    const event = eventOf(next.value);
    if (event !== undefined) yield event;
    if (next.value.event.case === "ended") return;
  }
}
