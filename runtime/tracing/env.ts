import type { EnvReader } from "../env-reader.ts";

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** OpenTelemetry's own settings, as far as they are honoured. */
export interface TracingConfig {
  /** Of the collector's `/v1/traces`. */
  url: string;
  /** Sent with every export; they may hold a secret. */
  headers: Record<string, string>;
  serviceName: string | undefined;
  resource: Record<string, string>;
  sampler: { name: (typeof SAMPLERS)[number]; ratio: number };
}

/** Undefined where no collector is named, or tracing is switched off. */
export function readTracing(read: EnvReader): TracingConfig | undefined {
  const url = urlOf(read);
  const off = read.choice("OTEL_SDK_DISABLED", ["false", "true"], "false") === "true";
  const exporter = read.choice("OTEL_TRACES_EXPORTER", ["otlp", "none"], "otlp");
  const sampler = {
    name: read.choice("OTEL_TRACES_SAMPLER", SAMPLERS, "parentbased_always_on"),
    ratio: read.decimal("OTEL_TRACES_SAMPLER_ARG", 0, 1) ?? 1,
  };
  // What else there is would be another exporter.
  for (const name of ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
    read.choice(name, ["http/protobuf"], "http/protobuf");
  const config = {
    headers: {
      ...read.pairs("OTEL_EXPORTER_OTLP_HEADERS"),
      ...read.pairs("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
    },
    serviceName: read.text("OTEL_SERVICE_NAME"),
    resource: read.pairs("OTEL_RESOURCE_ATTRIBUTES"),
    sampler,
  };
  return url === undefined || off || exporter === "none" ? undefined : { url, ...config };
}

/** The one is of traces alone and taken as it is, the other one of every kind of telemetry. */
function urlOf(read: EnvReader): string | undefined {
  const own = read.url("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ["http:", "https:"]);
  const base = read.url("OTEL_EXPORTER_OTLP_ENDPOINT", ["http:", "https:"]);
  return own ?? (base === undefined ? undefined : `${base.replace(/\/$/, "")}/v1/traces`);
}
