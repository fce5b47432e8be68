import type { FastifyInstance, FastifyRequest } from "fastify";
import { type OpenSpan, tracing } from "../../runtime/tracing/spans.ts";
import type { Finished } from "./finished.ts";

/**
 * A span for each request, as a part of what its client says it is a part of. Costs nothing where tracing is off.
 * @returns ends the span of a request that is over
 */
export function traceRequests(app: FastifyInstance): (finished: Finished) => void {
  const spans = tracing();
  if (!spans) return () => {};
  const open = new WeakMap<FastifyRequest, OpenSpan>();
  app.addHook("onRequest", (request, _reply, done) => {
    const span = spans.start(request.method, {
      kind: "server",
      parent: parentOf(request),
      attributes: attributesOf(request),
    });
    open.set(request, span);
    span.within(done);
  });
  // What reads a body goes on where the bytes come from, which is in no span.
  app.addHook("preHandler", (request, _reply, done) => {
    const span = open.get(request);
    span ? span.within(done) : done();
  });
  return (finished) => {
    const span = open.get(finished.request);
    if (span) end(span, finished);
  };
}

function parentOf({ headers }: FastifyRequest) {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== "string") return undefined;
  return { traceparent, tracestate: tracestate?.toString() };
}

function attributesOf({ id, method, protocol, url, raw }: FastifyRequest) {
  return {
    "http.request.method": method,
    "url.scheme": protocol,
    "url.path": url.split("?")[0] ?? "",
    "network.protocol.version": raw.httpVersion,
    "sandgate.request_id": id,
  };
}

function end(span: OpenSpan, { request, route, status }: Finished): void {
  span.rename(route === "unmatched" ? request.method : `${request.method} ${route}`);
  span.set({ "http.route": route, "http.response.status_code": status });
  if (request.caller) span.set({ "sandgate.org_id": request.caller.orgId });
  if (status >= 500) span.fail(String(status));
  span.end();
}
