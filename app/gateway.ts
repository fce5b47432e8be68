import { buildApp, type GatewayOptions } from "../gateway/app.ts";
import type { GatewayConfig } from "../runtime/config.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import { watchTls } from "../runtime/tls/watched.ts";
import { listen } from "./listen.ts";

/**
 * Opens the public port.
 * @returns its URL, as a program on this machine reaches it
 * @throws StartupError where the port cannot be had, or its certificate cannot be used
 */
export async function startGateway(
  options: Omit<GatewayOptions, "tls">,
  { host, port, https }: Pick<GatewayConfig, "host" | "port" | "https">,
  lifecycle: Lifecycle,
): Promise<string> {
  const tls = https
    ? await lifecycle.start("HTTPS files", {
        start: () => watchTls(https, options.log),
        end: (watched) => watched.stop(),
      })
    : undefined;
  const app = await lifecycle.start("gateway", {
    start: () => buildApp({ ...options, tls }),
    announce: (built) => built.ending.announce(),
    drain: (built, ms) => built.ending.drain(ms),
    end: (built) => built.close(),
  });
  return listen(app, { host, port, tls: tls?.current }, "HOST and PORT");
}
