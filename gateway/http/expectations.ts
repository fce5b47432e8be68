import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/**
 * A client that waits for `100 Continue` before it sends its body is told so by whoever reads that, and by nobody where it
 * is refused. One with an `Expect` that is not known is answered as any other; Node would answer 417 by itself.
 */
export function leaveExpectations({ server }: FastifyInstance): void {
  const answer = (request: IncomingMessage, response: ServerResponse) =>
    server.emit("request", request, response);
  server.on("checkContinue", answer);
  server.on("checkExpectation", answer);
}

/** Tells a client that waits for it to send the body. */
export function askForBody({ raw: { headers, httpVersion } }: FastifyRequest, reply: FastifyReply) {
  if (httpVersion === "1.1" && CONTINUE.test(headers.expect ?? "")) reply.raw.writeContinue();
}
