import type { FastifyReply, FastifyRequest } from "fastify";
import { errorAnswer } from "./answers.ts";
import { keepsBodyBack } from "./expectations.ts";
import { headersOf } from "./raw-answer.ts";

/** How long a client may go on to send what nobody wants. */
const LINGER_MS = 2_000;

/**
 * Answers with the envelope of whatever was thrown, while the client may still be sending its body. What it sends is thrown away
 * for a moment, for it would not read the answer on a connection that was reset; then the connection ends.
 */
export function answerEarly(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, headers, body } = errorAnswer(error, request);
  reply.hijack();
  const { raw } = reply;
  const length = Buffer.byteLength(body);
  const end = isComplete(request) ? {} : { connection: "close" };
  raw.writeHead(status, { ...headersOf(reply), ...headers, ...end, "content-length": length });
  raw.write(body);
  discard(request, () => raw.end());
}

function isComplete({ raw }: FastifyRequest): boolean {
  return raw.complete || raw.readableEnded;
}

/** Reads a body to its end, but for no longer than a moment. */
function discard(request: FastifyRequest, done: () => void): void {
  const { raw } = request;
  if (raw.readableEnded || raw.destroyed || keepsBodyBack(request)) {
    done();
    return;
  }
  const timer = setTimeout(finish, LINGER_MS);
  function finish() {
    clearTimeout(timer);
    raw.off("readable", drop).off("end", finish).off("close", finish);
    done();
  }
  function drop() {
    while (raw.read() !== null);
  }
  raw.on("readable", drop).once("end", finish).once("close", finish);
  drop();
}
