import type { DescMethod } from "@bufbuild/protobuf";
import {
  type ContextValues,
  createContextValues,
  type HandlerContext,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { createMethodUrl } from "@connectrpc/connect/protocol";
import type { CallScope } from "./call-scope.ts";
import { actorKey, callerKey } from "./context.ts";

/** What a request has beside its message, its method and its signal. */
export function requestHead(
  method: DescMethod,
  header: ConstructorParameters<typeof Headers>[0],
  values: ContextValues | undefined,
) {
  return {
    service: method.parent,
    requestMethod: "POST",
    url: createMethodUrl("memory:", method),
    header: new Headers(header),
    contextValues: values ?? createContextValues(),
  };
}

/** What a response has beside its message and its method. */
export function responseHead({ service, responseHeader, responseTrailer }: HandlerContext) {
  return { service, header: responseHeader, trailer: responseTrailer };
}

/** The request as the server sees it: of the client's context values caller and actor alone cross, as through a socket. */
export function received<Req extends UnaryRequest | StreamRequest>(sent: Req): Req {
  const contextValues = createContextValues();
  contextValues.set(callerKey, sent.contextValues.get(callerKey));
  const actor = sent.contextValues.get(actorKey);
  if (actor) contextValues.set(actorKey, actor);
  return { ...sent, contextValues };
}

export function handlerContext(
  req: UnaryRequest | StreamRequest,
  scope: CallScope,
): HandlerContext {
  const { method, service, signal, requestMethod, header, contextValues, url } = req;
  return {
    method,
    service,
    signal,
    timeoutMs: scope.timeoutMs,
    requestMethod,
    requestHeader: header,
    responseHeader: new Headers(),
    responseTrailer: new Headers(),
    protocolName: "memory",
    values: contextValues,
    url,
  };
}
