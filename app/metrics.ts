import type { Database } from "../prisma/database.ts";
import { METRICS } from "../runtime/metrics/catalogue.ts";
import { Metrics } from "../runtime/metrics/metrics.ts";
import {
  OPENMETRICS_TEXT,
  PROMETHEUS_TEXT,
  toOpenMetrics,
} from "../runtime/metrics/open-metrics.ts";
import type { RemoteNumbers } from "../runtime/rpc/guard.ts";
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

/** What the pool of a database has to do. */
export function exposePool(metrics: Metrics, { pool }: Pick<Database, "pool">): void {
  metrics.gauge(METRICS.dbConnections, (put) => {
    put(pool().inUse, { state: "in_use" });
    put(pool().idle, { state: "idle" });
  });
  metrics.gauge(METRICS.dbSize, (put) => put(pool().size, {}));
  metrics.gauge(METRICS.dbWaiting, (put) => put(pool().waiting, {}));
  metrics.total(METRICS.dbRefused, (put) => put(pool().refused, {}));
}

/** What is under way to a service in another process, and whether it answers. */
export function exposeRemote(
  metrics: Metrics,
  service: string,
  numbers: () => RemoteNumbers,
): void {
  metrics.gauge(METRICS.rpcUnderWay, (put) => {
    put(numbers().calls, { service, kind: "call" });
    put(numbers().streams, { service, kind: "stream" });
  });
  metrics.gauge(METRICS.rpcCutOff, (put) => put(numbers().open ? 1 : 0, { service }));
  metrics.total(METRICS.rpcRefused, (put) => put(numbers().refused, { service }));
}
