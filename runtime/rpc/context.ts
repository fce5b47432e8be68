import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { type Actor, type Caller, OPERATOR } from "../caller.ts";

/**
 * On whose behalf a call is made. Set it in a call's `contextValues`; a handler reads it with
 * `requireCaller`. It and `actorKey` are the context values that reach the handler, in process and over the wire.
 */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "sandgate caller",
});

/** Who acts in a call that names no organization; where one is named, the caller says it. */
export const actorKey = createContextKey<Actor | undefined>(undefined, {
  description: "sandgate actor",
});

/** Who acts, of a call that may name no organization; the operator where nobody is named. */
export function actorOf({ values }: Pick<HandlerContext, "values">): Actor {
  return values.get(callerKey)?.actor ?? values.get(actorKey) ?? OPERATOR;
}

/** @throws ConnectError (InvalidArgument) where the call was made for no organization. */
export function requireCaller(context: Pick<HandlerContext, "values" | "method">): Caller {
  const caller = context.values.get(callerKey);
  if (caller) return caller;
  throw new ConnectError(
    `${context.method.parent.typeName}.${context.method.name} needs an organization: set ${ORGANIZATION_HEADER}`,
    Code.InvalidArgument,
  );
}

export const ORGANIZATION_HEADER = "sandgate-organization-id";
export const ACTOR_HEADER = "sandgate-actor";
export const REQUEST_ID_HEADER = "x-request-id";
export const IDEMPOTENCY_KEY_HEADER = "sandgate-idempotency-key";
export const REQUEST_SHA256_HEADER = "sandgate-request-sha256";
