import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import { BACKLOG } from "../runtime/backlog.ts";
import { codeOf } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";

/** Where a server listens; port 0: any free one. */
export interface Address {
  host: string;
  port: number;
}

/**
 * Opens a server's port.
 * @param settings the variables that set it, for the operator
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had
 */
export async function listen(
  app: FastifyInstance,
  { host, port }: Address,
  settings: string,
): Promise<string> {
  try {
    await app.listen({ host, port, backlog: BACKLOG });
  } catch (error) {
    throw new StartupError(`${whyNot(error, host, port)} (${settings} set it)`);
  }
  // A server that listens on TCP has an address of this kind.
  return urlOf(host, (app.server.address() as AddressInfo).port);
}

function whyNot(error: unknown, host: string, port: number): string {
  const reasons: Record<string, string> = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not open it",
    EADDRNOTAVAIL: "this machine has no such address",
    ENOTFOUND: "no such host is known",
  };
  const code = codeOf(error);
  return `The port ${port} on ${host} cannot be opened: ${reasons[code] ?? code}`;
}

/** Of a port, as a program on this machine reaches it. */
export function urlOf(host: string, port: number): string {
  const reachable = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
