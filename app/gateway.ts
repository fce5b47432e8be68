import type { AddressInfo } from "node:net";
import { buildApp, type GatewayOptions } from "../gateway/app.ts";
import { codeOf } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";

/**
 * Opens the public port.
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had
 */
export async function startGateway(
  options: GatewayOptions,
  { host, port }: { host: string; port: number },
  lifecycle: Lifecycle,
): Promise<string> {
  const app = await lifecycle.start("gateway", {
    start: () => buildApp(options),
    announce: (built) => built.ending.announce(),
    drain: (built, ms) => built.ending.drain(ms),
    end: (built) => built.close(),
  });
  try {
    await app.listen({ host, port });
  } catch (error) {
    throw listenError(error, host, port);
  }
  // A server that listens on TCP has an address of this kind.
  return urlOf(host, (app.server.address() as AddressInfo).port);
}

/** Why a port cannot be had, for the operator. */
function listenError(error: unknown, host: string, port: number) {
  const reasons: Record<string, string> = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not open it",
    EADDRNOTAVAIL: "this machine has no such address",
    ENOTFOUND: "no such host is known",
  };
  const code = codeOf(error);
  const sentence = `The port ${port} on ${host} cannot be opened: ${reasons[code] ?? code}`;
  return new StartupError(`${sentence} (HOST and PORT set it)`);
}

/** Of a port, as a program on this machine reaches it. */
export function urlOf(host: string, port: number): string {
  const reachable = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${port}`;
}
