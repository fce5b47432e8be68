import type { Attributes } from "@opentelemetry/api";

/** Where in a trace something is, as W3C Trace Context writes it. */
export interface TraceContext {
  traceparent: string;
  tracestate?: string | undefined;
}

export interface SpanOptions {
  kind: "server" | "client" | "internal" | "consumer";
  attributes?: Attributes;
  /** What it is a part of, where that comes from elsewhere; else what is under way here. */
  parent?: TraceContext | undefined;
}

/** A span that is not over. */
export interface OpenSpan {
  set(attributes: Attributes): void;
  rename(name: string): void;
  /** Says that it went wrong. @param type a short name from a small set; it is also its `error.type` */
  fail(type: string): void;
  end(): void;
  /** Does something as a part of it. */
  within<T>(work: () => T): T;
}

/** What makes spans, while tracing is on. */
export interface Spans {
  start(name: string, options: SpanOptions): OpenSpan;
  /** Where what is under way here is; undefined: in no trace. */
  current(): TraceContext | undefined;
  /** Its id, of 32 hexadecimal digits. */
  traceId(): string | undefined;
}

let spans: Spans | undefined;

/** Turns tracing on for this process, or off again. */
export function setSpans(given: Spans | undefined): void {
  spans = given;
}

/** Undefined: tracing is off, and nothing is to be done for it. */
export function tracing(): Spans | undefined {
  return spans;
}

/** What makes spans, where what is under way here is in a trace: work of the background is in none. */
export function traced(): Spans | undefined {
  return spans?.traceId() === undefined ? undefined : spans;
}

/** Does something in a span of its own. While tracing is off, or nothing is traced here, just does it. */
export function inSpan<T>(
  name: string,
  options: SpanOptions,
  work: (span?: OpenSpan) => Promise<T>,
): Promise<T> {
  const made = options.parent ? spans : traced();
  return made ? finish(made.start(name, options), work) : work();
}

/** Does something in this span, and ends it. */
export async function finish<T>(span: OpenSpan, work: (span: OpenSpan) => Promise<T>): Promise<T> {
  try {
    return await span.within(() => work(span));
  } catch (error) {
    span.fail(error instanceof Error ? error.name : "error");
    throw error;
  } finally {
    span.end();
  }
}

/** The context of what is under way here in one text, as rows keep it; null: none. */
export function traceText(): string | null {
  const at = spans?.current();
  if (!at) return null;
  return at.tracestate ? `${at.traceparent} ${at.tracestate}` : at.traceparent;
}

/** What `traceText` wrote. */
export function traceOf(text: string | null): TraceContext | undefined {
  if (text === null) return undefined;
  const [traceparent = "", ...rest] = text.split(" ");
  return { traceparent, tracestate: rest.join(" ") || undefined };
}
