import { METRICS } from "../../runtime/metrics/catalogue.ts";
import type { Metrics } from "../../runtime/metrics/metrics.ts";
import type { Finished } from "./finished.ts";

/** Counts requests by route, method and status, and measures them. */
export function countRequests(metrics: Metrics): (finished: Finished) => void {
  const requests = metrics.counter(METRICS.httpRequests);
  const duration = metrics.histogram(METRICS.httpDuration);
  return ({ request: { method }, route, status, ms }) => {
    requests.inc({ route, method, code: status });
    duration.observe({ route, method }, ms / 1_000);
  };
}
