import type { IncomingMessage } from "node:http";
import type { TLSSocket } from "node:tls";
import {
  Code,
  type ContextValues,
  createContextKey,
  createContextValues,
} from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Health } from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { tokenCheck } from "./token.ts";

/** Whether a call comes from who may call everything; a few may be made by anybody. */
export const trustedKey = createContextKey(true, { description: "sandgate trusted" });

/** What a probe asks, which has no credentials; what it tells without them is health.ts's business. */
const OPEN = `/${Health.typeName}/${Health.method.check.name}`;

const MESSAGE = "unauthenticated";
/** In Connect. */
const REFUSAL = JSON.stringify({ code: MESSAGE, message: MESSAGE });
/** In gRPC, as trailers, and in gRPC-Web, which takes them for headers. */
const GRPC_REFUSAL = { "grpc-status": String(Code.Unauthenticated), "grpc-message": MESSAGE };
const GRPC_WEB = /^application\/grpc-web(-text)?(\+\w+)?$/;
const GRPC = /^application\/grpc(\+\w+)?$/;

/**
 * Refuses who has neither a client certificate that was verified nor a service token. It is done before anything else is
 * looked at, so that all that such a caller asks is answered alike, and nothing of a body is read.
 * @returns values of a call's context, by which handlers know
 */
export function requireTrust(
  app: FastifyInstance,
  tokens: readonly string[],
): (request: FastifyRequest) => ContextValues {
  const hasToken = tokenCheck(tokens);
  const trusts = ({ raw }: FastifyRequest) =>
    isVerified(raw) || hasToken(raw.headers.authorization ?? "");
  app.addHook("onRequest", async (request, reply) => {
    if (trusts(request) || request.url === OPEN) return;
    refuse(request, reply);
    return reply;
  });
  return (request) => createContextValues().set(trustedKey, trusts(request));
}

/** Says no more than that, as the protocol has it whose bytes would be coming. */
export function refuse({ headers }: FastifyRequest, reply: FastifyReply): void {
  const type = headers["content-type"] ?? "";
  if (GRPC_WEB.test(type)) {
    reply.headers({ ...GRPC_REFUSAL, "content-type": type }).send();
  } else if (GRPC.test(type)) {
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": type });
    reply.raw.addTrailers(GRPC_REFUSAL);
    reply.raw.end();
  } else {
    reply.code(401).type("application/json").send(REFUSAL);
  }
}

/** By the authority of this server: see listener.ts. */
function isVerified({ socket }: IncomingMessage): boolean {
  return (socket as Partial<TLSSocket>).authorized === true;
}
