import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preParsingHookHandler,
  RouteShorthandOptions,
} from "fastify";
import type { Static, TObject, TSchema } from "typebox";
import type { Caller } from "../../runtime/caller.ts";
import { ignoreBodies, JSON_TYPE } from "./body.ts";
import { answerEarly } from "./early-answer.ts";
import { askForBody } from "./expectations.ts";
import { hangUpOf } from "./hang-up.ts";
import { KeysInFlight } from "./idempotency.ts";
import type { Operation } from "./operation.ts";
import { requestReader } from "./read-request.ts";
import { requestSha256 as hashRequest } from "./request-hash.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A request that fits its operation, and who made it. */
export interface Call<P = unknown, Q = unknown, B = unknown, H = unknown> {
  params: P;
  query: Q;
  headers: H;
  body: B;
  /** With the request's idempotency key, where it has one. */
  caller: Caller;
  /** Says in the answer that it is an earlier one, given again. */
  replayed(): void;
  /** Aborted when the client hangs up. */
  signal: AbortSignal;
}

export interface Route {
  method: Method;
  /** In OpenAPI's notation: `/v1/sandboxes/{sandbox_id}`. */
  path: string;
  operation: Operation;
  answer(request: FastifyRequest, reply: FastifyReply, keys: KeysInFlight): Promise<unknown>;
}

/** An operation at its place, with what does it. */
export function route<
  P extends TObject,
  Q extends TObject,
  B extends TSchema,
  R extends TSchema,
  H extends TObject,
>(
  method: Method,
  path: string,
  operation: Operation<P, Q, B, R, H>,
  handle: (call: Call<Static<P>, Static<Q>, Static<B>, Static<H>>) => Promise<Static<R>>,
): Route {
  const read = requestReader(operation);
  return {
    method,
    path,
    operation,
    answer: async (request, reply, keys) => {
      const { idempotencyKey, ...asked } = read(request, reply);
      const caller = callerOf(request, asked, idempotencyKey);
      const replayed = () => void reply.header("idempotent-replayed", "true");
      const signal = hangUpOf(reply);
      const answer = await keys.hold(caller, () => handle({ ...asked, caller, replayed, signal }));
      if (!operation.text) return answer;
      reply.type(JSON_TYPE);
      return operation.text(answer);
    },
  };
}

function callerOf(
  { caller, method, url }: FastifyRequest,
  { body, headers }: { body: unknown; headers: object },
  key: string | undefined,
): Caller {
  if (key === undefined) return caller;
  const requestSha256 = hashRequest(method, url, body, headers);
  return { ...caller, idempotency: { key, requestSha256 } };
}

/** Registers routes whose callers `authenticate` knows before anything else is looked at. */
export function mount(
  app: FastifyInstance,
  routes: readonly Route[],
  authenticate: onRequestHookHandler,
): void {
  const keys = new KeysInFlight();
  const add = (to: FastifyInstance, { method, path, operation, answer }: Route) =>
    to.route({
      method,
      url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
      ...bodyOptions(operation),
      onRequest: operation.body?.media ? [authenticate, forgetType] : authenticate,
      handler: (request, reply) => answer(request, reply, keys),
    });
  const takesJson = ({ operation: { body } }: Route) => body !== undefined && !body.media;
  for (const route of routes.filter(takesJson)) add(app, route);
  app.register(async (unread) => {
    ignoreBodies(unread);
    for (const route of routes) if (!takesJson(route)) add(unread, route);
  });
}

/** Who reads a body also asks a client for it that waits; who does not read it to its end answers early. */
function bodyOptions({ body }: Operation): Partial<RouteShorthandOptions> {
  if (!body) return {};
  if (body.media) return { errorHandler: answerEarly, config: { ownPace: true } };
  const limit = body.limit === undefined ? {} : { bodyLimit: body.limit };
  return { ...limit, preParsing: askFirst };
}

const askFirst: preParsingHookHandler = (request, reply, payload, done) => {
  askForBody(request, reply);
  done(null, payload);
};

// Whatever is sent is taken, also what says of itself that it is something impossible.
async function forgetType({ raw }: FastifyRequest): Promise<void> {
  delete raw.headers["content-type"];
}
