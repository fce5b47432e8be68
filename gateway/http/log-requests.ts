import type { FastifyRequest } from "fastify";
import type { Finished } from "./finished.ts";

/** A line for each request that is over; never its query or its body. */
export function logRequest({ request, route, status, ms }: Finished): void {
  const { id, method, log, caller } = request;
  const fields = { method, route, status, duration_ms: Math.round(ms * 1_000) / 1_000 };
  log.info({ request_id: id, ...fields, org_id: caller?.orgId }, "request");
}

/** An answer that had begun, and could not be brought to its end. */
export function logBrokenOff({ id, caller, log }: FastifyRequest, err: unknown, what: string) {
  log.warn({ err, request_id: id, org_id: caller.orgId }, what);
}
