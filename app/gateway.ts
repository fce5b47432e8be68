import { buildApp, type GatewayOptions } from "../gateway/app.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import { type Address, listen } from "./listen.ts";

/**
 * Opens the public port.
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had
 */
export async function startGateway(
  options: GatewayOptions,
  address: Address,
  lifecycle: Lifecycle,
): Promise<string> {
  const app = await lifecycle.start("gateway", {
    start: () => buildApp(options),
    announce: (built) => built.ending.announce(),
    drain: (built, ms) => built.ending.drain(ms),
    end: (built) => built.close(),
  });
  return listen(app, address, "HOST and PORT");
}
