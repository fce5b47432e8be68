import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { type OpenSpan, type SpanOptions, traced, tracing } from "./spans.ts";

type Call = Parameters<Parameters<Interceptor>[0]>[0];

/** A call to another process: its span, and where it is in the trace, go with it. */
export const traceClientCall: Interceptor = (next) => (req) => {
  const spans = traced();
  if (!spans) return next(req);
  const span = spans.start(nameOf(req), { kind: "client", attributes: attributesOf(req) });
  return follow(span, () => {
    const at = spans.current();
    if (at) req.header.set("traceparent", at.traceparent);
    if (at?.tracestate) req.header.set("tracestate", at.tracestate);
    return next(req);
  });
};

/** A call from another process, where its caller says what it is a part of. */
export const traceServerCall: Interceptor = (next) => (req) => {
  const traceparent = tracing() && req.header.get("traceparent");
  if (!traceparent) return next(req);
  const parent = { traceparent, tracestate: req.header.get("tracestate") ?? undefined };
  return traceCall(next, req, { kind: "server", parent });
};

/** A call within this process. */
export const traceMemoryCall: Interceptor = (next) => (req) =>
  traced() ? traceCall(next, req, { kind: "internal" }) : next(req);

function traceCall(next: Parameters<Interceptor>[0], req: Call, options: SpanOptions) {
  const span = tracing()?.start(nameOf(req), { ...options, attributes: attributesOf(req) });
  return span ? follow(span, () => next(req)) : next(req);
}

/** A stream is over when it ends, and what makes its messages is a part of it too. */
async function follow(span: OpenSpan, call: () => ReturnType<Parameters<Interceptor>[0]>) {
  try {
    const res = await span.within(call);
    if (res.stream) return { ...res, message: followed(span, res.message) };
    span.end();
    return res;
  } catch (error) {
    failed(span, error);
    span.end();
    throw error;
  }
}

async function* followed<T>(span: OpenSpan, messages: AsyncIterable<T>) {
  const iterator = span.within(() => messages[Symbol.asyncIterator]());
  let over = false;
  try {
    for (;;) {
      const next = await span.within(() => iterator.next());
      over = next.done === true;
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    over = true;
    failed(span, error);
    throw error;
  } finally {
    if (!over) await iterator.return?.();
    span.end();
  }
}

function failed(span: OpenSpan, error: unknown): void {
  span.fail(Code[error instanceof ConnectError ? error.code : Code.Unknown]);
}

function nameOf({ method }: Call): string {
  return `${method.parent.typeName}/${method.name}`;
}

function attributesOf(req: Call) {
  return { "rpc.system": "connect_rpc", "rpc.method": nameOf(req) };
}
