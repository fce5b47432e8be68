import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { invalidRequest, PublicError, toPublicError } from "../errors.ts";
import { JSON_TYPE, mediaTypeRefused } from "./body.ts";
import { allowedMethods } from "./routing.ts";

type Paths = ReadonlyMap<string, readonly string[]>;

/** Gives every answer its request id, and one envelope to all that goes wrong. */
export function answerAlike(app: FastifyInstance): void {
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done();
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
}

/** Refuses what no route takes, before its body is looked at. */
export function refuseStrays(app: FastifyInstance, paths: Paths): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const isStray = request.is404 || hasEmptyParam(request);
    done(isStray ? noRoute(request, paths) : undefined);
  });
  app.setNotFoundHandler((request) => {
    throw noRoute(request, paths);
  });
}

/** Answers with the envelope of whatever was thrown; logs what is not the client's fault. */
export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply) {
  const { status, headers, body } = errorAnswer(error, request);
  return reply.code(status).headers(headers).send(body);
}

/** What is answered to whatever was thrown; logs what is not the client's fault. */
export function errorAnswer(error: unknown, request: FastifyRequest) {
  const answer = fromFastify(error) ?? toPublicError(error);
  const gone = request.raw.socket.destroyed;
  if (answer.status >= 500 && !gone) logFailure(error, answer, request);
  return {
    status: answer.status,
    headers: { "x-request-id": request.id, ...answer.headers, "content-type": JSON_TYPE },
    body: answer.text,
  };
}

function logFailure(err: unknown, { code }: PublicError, request: FastifyRequest) {
  const { id, method, url, caller } = request;
  const fields = { request_id: id, code, method, url, org_id: caller?.orgId };
  request.log.error({ err, ...fields }, "request failed");
}

/** What Fastify itself refuses. */
function fromFastify(error: unknown): PublicError | undefined {
  switch ((error as FastifyError | null)?.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new PublicError("payload_too_large", "the body is too large");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
    case "FST_ERR_CTP_INVALID_CONTENT_TYPE":
      return mediaTypeRefused();
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return invalidRequest([{ field: "body", message: "is not as long as Content-Length says" }]);
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
      return invalidRequest([{ field: "path", message: "is not a valid URL path" }]);
    default:
      return undefined;
  }
}

function noRoute(request: FastifyRequest, paths: Paths) {
  const allowed = allowedMethods(paths, request.url);
  if (allowed.length === 0) return new PublicError("not_found", "resource not found");
  const message = `${request.method} is not allowed here`;
  return new PublicError("method_not_allowed", message, null, { allow: allowed.join(", ") });
}

/** A `{name}` in a path stands for something. */
function hasEmptyParam({ params }: FastifyRequest): boolean {
  return Object.values(params as Record<string, string>).includes("");
}
