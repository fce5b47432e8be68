import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { keepSecretFile } from "../runtime/data-dir.ts";
import type { Config } from "../runtime/env.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import type { Routes } from "../runtime/rpc/routes.ts";
import { listenRpc } from "../runtime/rpc/server.ts";

interface RpcOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
  routes: Routes;
  ready: () => Promise<boolean>;
}

/**
 * Opens the services' own port, where RPC_PORT asks for it.
 * @returns its address, `127.0.0.1:9090` for one
 * @throws StartupError where the port or the token cannot be had
 */
export async function startRpc(options: RpcOptions): Promise<string | undefined> {
  const { config, log, lifecycle, routes, ready } = options;
  const { host, port, serviceToken } = config.rpc;
  if (port === undefined) return undefined;
  const token = serviceToken ?? (await keepSecretFile(tokenFileOf(config), newToken));
  const server = await lifecycle.start("RPC port", {
    start: () => listenRpc({ host, port, routes, token, ready, log }),
    end: (listening) => listening.close(),
  });
  return `${host}:${server.port}`;
}

/** Where a generated service token is kept. */
function tokenFileOf({ dataDir }: Config): string {
  return join(dataDir, "service-token");
}

function newToken(): string {
  return randomBytes(32).toString("base64url");
}
