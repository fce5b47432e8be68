import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answerTooLate } from "./client-error.ts";

/** For a body that is read before anything is done; 32 MiB come in it at 2.3 Mbit/s. */
const BODY_TIMEOUT_MS = 120_000;

declare module "fastify" {
  interface FastifyContextConfig {
    /** Its body is read as it comes, and timed by who reads it. */
    ownPace?: boolean;
  }
}

/**
 * Ends the connections of clients whose bodies take too long, also of those who were answered before their body was there.
 * @param ms 120,000 unless set
 */
export function limitSlowBodies(app: FastifyInstance, ms: number = BODY_TIMEOUT_MS): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (hasBody(request) && !request.routeOptions.config.ownPace) time(request, reply, ms);
    done();
  });
}

function hasBody({ headers }: FastifyRequest): boolean {
  const length = headers["content-length"];
  return headers["transfer-encoding"] !== undefined || (length !== undefined && length !== "0");
}

function time({ raw }: FastifyRequest, reply: FastifyReply, ms: number): void {
  const timer = setTimeout(() => {
    if (raw.complete) return;
    if (reply.raw.headersSent) raw.socket.destroy();
    else answerTooLate(raw.socket);
  }, ms);
  const done = () => {
    clearTimeout(timer);
    raw.off("end", done).off("close", done);
  };
  raw.once("end", done).once("close", done);
}
