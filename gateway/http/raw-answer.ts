import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";

/** What hooks have set, such as the request id, for an answer that Fastify does not write itself. */
export function headersOf(reply: FastifyReply): Record<string, string | number | string[]> {
  const given = Object.entries(reply.getHeaders());
  return Object.fromEntries(given.flatMap(([k, v]) => (v === undefined ? [] : [[k, v]])));
}

/** Returns when there is room again, or when the signal says that it is of no use. */
export async function roomIn(raw: ServerResponse, signal: AbortSignal): Promise<void> {
  await once(raw, "drain", { signal }).catch(() => undefined);
}
