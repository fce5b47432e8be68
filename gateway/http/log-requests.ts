import type { Finished } from "./finished.ts";

/** A line for each request that is over; never its query or its body. */
export function logRequest({ request, route, status, ms }: Finished): void {
  const { method, log, caller } = request;
  const fields = { method, route, status, duration_ms: Math.round(ms * 1_000) / 1_000 };
  log.info({ ...fields, org_id: caller?.orgId }, "request");
}
