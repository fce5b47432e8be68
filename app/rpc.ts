import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../runtime/config.ts";
import { keepSecretFile } from "../runtime/data-dir.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { countServerCalls } from "../runtime/metrics/rpc.ts";
import type { Routes } from "../runtime/rpc/routes.ts";
import { listenRpc } from "../runtime/rpc/server.ts";
import { traceServerCall } from "../runtime/tracing/rpc.ts";
import { refuseExposure } from "./exposure.ts";
import { provideTls } from "./tls.ts";

interface RpcOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
  metrics: Metrics;
  routes: Routes;
  ready: () => Promise<boolean>;
}

/**
 * Opens the services' own port, where RPC_PORT asks for it.
 * @returns its address, `127.0.0.1:9090` for one
 * @throws StartupError where the port, the token or the certificate cannot be had, or anybody could call
 */
export async function startRpc(options: RpcOptions): Promise<string | undefined> {
  const { config, log, lifecycle, metrics, routes, ready } = options;
  const { host, port } = config.rpc;
  if (port === undefined) return undefined;
  await refuseExposure(config.rpc, log);
  const tls = await provideTls(options);
  const tokens = [await provideToken(config), config.rpc.previousServiceToken ?? []].flat();
  const leaving = () => lifecycle.stopping;
  const interceptors = [traceServerCall, countServerCalls(metrics)];
  const server = await lifecycle.start("RPC port", {
    start: () => listenRpc({ host, port, routes, tokens, tls, ready, leaving, log, interceptors }),
    drain: (listening, ms) => listening.close(ms),
    end: (listening) => listening.close(0),
  });
  return `${host}:${server.port}`;
}

/**
 * The service token: SERVICE_TOKEN, or one that is kept in a file.
 * @throws StartupError where the file cannot be used
 */
export async function provideToken(config: Config): Promise<string> {
  return config.rpc.serviceToken ?? (await keepSecretFile(tokenFileOf(config), newToken));
}

/** Where a generated service token is kept. */
export function tokenFileOf({ dataDir }: Config): string {
  return join(dataDir, "service-token");
}

function newToken(): string {
  return randomBytes(32).toString("base64url");
}
