import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Static, TObject, TSchema } from "typebox";
import type { Caller } from "../../runtime/caller.ts";
import { ignoreBodies } from "./body.ts";
import { hangUpOf } from "./hang-up.ts";
import { KeysInFlight } from "./idempotency.ts";
import type { Operation } from "./operation.ts";
import { requestReader } from "./read-request.ts";
import { requestSha256 } from "./request-hash.ts";

export type Method = "GET" | "POST" | "PATCH" | "DELETE";

/** A request that fits its operation, and who made it. */
export interface Call<P = unknown, Q = unknown, B = unknown> {
  params: P;
  query: Q;
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
export function route<P extends TObject, Q extends TObject, B extends TSchema, R extends TSchema>(
  method: Method,
  path: string,
  operation: Operation<P, Q, B, R>,
  handle: (call: Call<Static<P>, Static<Q>, Static<B>>) => Promise<Static<R>>,
): Route {
  const read = requestReader(operation);
  return {
    method,
    path,
    operation,
    answer: async (request, reply, keys) => {
      const { idempotencyKey, ...asked } = read(request, reply);
      const caller = callerOf(request, asked.body, idempotencyKey);
      const replayed = () => void reply.header("idempotent-replayed", "true");
      const signal = hangUpOf(reply);
      return keys.hold(caller, () => handle({ ...asked, caller, replayed, signal }));
    },
  };
}

function callerOf({ caller, method, url }: FastifyRequest, body: unknown, key?: string): Caller {
  if (key === undefined) return caller;
  return { ...caller, idempotency: { key, requestSha256: requestSha256(method, url, body) } };
}

/** Registers routes whose callers `authenticate` knows before anything else is looked at. */
export function mount(
  app: FastifyInstance,
  routes: readonly Route[],
  authenticate: (request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): void {
  const keys = new KeysInFlight();
  const add = (to: FastifyInstance, { method, path, operation, answer }: Route) =>
    to.route({
      method,
      url: path.replaceAll(/\{(\w+)\}/g, ":$1"),
      ...(operation.body?.limit === undefined ? {} : { bodyLimit: operation.body.limit }),
      onRequest: authenticate,
      handler: (request, reply) => answer(request, reply, keys),
    });
  for (const route of routes.filter(({ operation }) => operation.body)) add(app, route);
  app.register(async (bodiless) => {
    ignoreBodies(bodiless);
    for (const route of routes.filter(({ operation }) => !operation.body)) add(bodiless, route);
  });
}
