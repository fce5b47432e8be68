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

const asked = new WeakSet<IncomingMessage>();

/** Tells a client that waits for it to send the body. */
export function askForBody({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (!waits(raw)) return;
  asked.add(raw);
  reply.raw.writeContinue();
}

/** Whether a client keeps its body back, as it was not asked for it. */
export function keepsBodyBack({ raw }: FastifyRequest): boolean {
  return waits(raw) && !asked.has(raw);
}

function waits({ headers, httpVersion }: IncomingMessage): boolean {
  return httpVersion === "1.1" && CONTINUE.test(headers.expect ?? "");
}
