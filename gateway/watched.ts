import type { FastifyInstance } from "fastify";
import { METRICS } from "../runtime/metrics/catalogue.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { countRequests } from "./http/count-requests.ts";
import { type Finished, onFinished } from "./http/finished.ts";
import { logRequest } from "./http/log-requests.ts";
import { traceRequests } from "./http/trace-requests.ts";

interface Watched {
  metrics: Metrics;
  /** Whether a line is logged for each request. */
  logRequests: boolean;
  waits: { held: number };
  waitsMax: number;
  /** Logs that are followed. */
  streams: { open: number };
  transfers: { open: number };
}

/** Lets those who watch the gateway see what it does; before any route is registered. */
export function letBeWatched(app: FastifyInstance, watched: Watched): void {
  const { metrics, waits, waitsMax, streams, transfers } = watched;
  metrics.gauge(METRICS.waitsHeld, (put) => put(waits.held, {}));
  metrics.gauge(METRICS.waitsMax, (put) => put(waitsMax, {}));
  metrics.gauge(METRICS.logFollowers, (put) => put(streams.open, {}));
  metrics.gauge(METRICS.transfers, (put) => put(transfers.open, {}));
  const endSpan = traceRequests(app);
  const count = countRequests(metrics);
  const log = watched.logRequests ? logRequest : () => {};
  onFinished(app, (finished: Finished) => {
    count(finished);
    log(finished);
    endSpan(finished);
  });
}
