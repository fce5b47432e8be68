import { randomUUID } from "node:crypto";
import { setGlobalErrorHandler } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import { VERSION } from "../version.ts";
import type { TracingConfig } from "./env.ts";
import { createSpans } from "./open-telemetry.ts";
import type { Spans } from "./spans.ts";

/** A collector that does not answer is given up after this, at the end of the program too. */
const TIMEOUT_MS = 5_000;

/** @param serviceName where the settings name none @param exporter of the settings, unless a test brings its own */
export function startSdk(
  config: TracingConfig,
  serviceName: string,
  onError: (error: unknown) => void,
  exporter: SpanExporter = exporterOf(config),
): { spans: Spans; stop(): Promise<void> } {
  setGlobalErrorHandler(onError);
  const provider = new TracerProvider({
    sampler: samplerOf(config.sampler),
    resource: resourceFromAttributes({
      "service.namespace": "sandgate",
      "service.version": VERSION,
      "service.instance.id": randomUUID(),
      ...config.resource,
      "service.name": config.serviceName ?? config.resource["service.name"] ?? serviceName,
    }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: TIMEOUT_MS })],
  });
  return {
    spans: createSpans(provider.getTracer("sandgate", VERSION)),
    stop: () => provider.shutdown(),
  };
}

function exporterOf({ url, headers }: TracingConfig): SpanExporter {
  return new OTLPTraceExporter({ url, headers, timeoutMillis: TIMEOUT_MS });
}

function samplerOf({ name, ratio }: TracingConfig["sampler"]): Sampler {
  const root = () => {
    if (name.endsWith("always_off")) return new AlwaysOffSampler();
    if (name.endsWith("traceidratio")) return new TraceIdRatioBasedSampler(ratio);
    return new AlwaysOnSampler();
  };
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root: root() }) : root();
}
