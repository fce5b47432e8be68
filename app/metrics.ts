import { METRICS } from "../runtime/metrics/catalogue.ts";
import { Metrics } from "../runtime/metrics/metrics.ts";
import {
  OPENMETRICS_TEXT,
  PROMETHEUS_TEXT,
  toOpenMetrics,
} from "../runtime/metrics/open-metrics.ts";
import { VERSION } from "../runtime/version.ts";
import type { AdminPaths } from "./admin.ts";

/** What a program counts, itself included. @param role `all` where it is every role in one process */
export function createMetrics(role: string): Metrics {
  const metrics = new Metrics();
  metrics.countProcess();
  metrics.gauge(METRICS.build, (put) => put(1, { version: VERSION, role }));
  return metrics;
}

/** `/metrics`, in Prometheus' text format, or as OpenMetrics where that is asked for. */
export function metricsPath(metrics: Metrics): AdminPaths {
  return (app) => {
    app.get("/metrics", async ({ headers }, reply) => {
      const text = await metrics.text();
      const open = headers.accept?.includes("application/openmetrics-text") ?? false;
      reply.header("content-type", open ? OPENMETRICS_TEXT : PROMETHEUS_TEXT);
      return open ? toOpenMetrics(text) : text;
    });
  };
}
