import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  defaultTextMapGetter,
  defaultTextMapSetter,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import type { OpenSpan, SpanOptions, Spans, TraceContext } from "./spans.ts";

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
  consumer: SpanKind.CONSUMER,
} as const;

/** Spans by OpenTelemetry, whose context follows what is asynchronous. Nothing global of it is used. */
export function createSpans(tracer: Tracer): Spans {
  const contexts = new AsyncLocalStorage<Context>();
  const propagator = new W3CTraceContextPropagator();
  const active = () => contexts.getStore() ?? ROOT_CONTEXT;
  const contextOf = (parent: TraceContext | undefined) =>
    parent ? propagator.extract(ROOT_CONTEXT, parent, defaultTextMapGetter) : active();
  const start = (name: string, { kind, attributes = {}, parent }: SpanOptions): OpenSpan => {
    const from = contextOf(parent);
    const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, from);
    const inside = trace.setSpan(from, span);
    return openSpan(span, (work) => contexts.run(inside, work));
  };
  const spanContext = () => {
    const found = trace.getSpanContext(active());
    return found && isSpanContextValid(found) ? found : undefined;
  };
  return {
    start,
    current: () => {
      if (!spanContext()) return undefined;
      const carrier = { traceparent: "" };
      propagator.inject(active(), carrier, defaultTextMapSetter);
      return carrier;
    },
    traceId: () => spanContext()?.traceId,
  };
}

function openSpan(span: Span, within: OpenSpan["within"]): OpenSpan {
  return {
    set: (attributes) => void span.setAttributes(attributes),
    rename: (name) => void span.updateName(name),
    fail: (type) => {
      span.setAttribute("error.type", type);
      span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(),
    within,
  };
}
