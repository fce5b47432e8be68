import { Code, ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Caller } from "../caller.ts";

/**
 * On whose behalf a call is made. Set it in a call's `contextValues`; a handler reads it with
 * `requireCaller`. It is the one context value that reaches the handler, in process and over the wire.
 */
export const callerKey = createContextKey<Caller | undefined>(undefined, {
  description: "sandgate caller",
});

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
