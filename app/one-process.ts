import type { Config } from "../runtime/config.ts";
import { prepareDataDir } from "../runtime/data-dir.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import { healthPaths, startAdmin } from "./admin.ts";
import type { Running } from "./banner.ts";
import { provideDatabase } from "./database.ts";
import { startGateway } from "./gateway.ts";
import { createMetrics, metricsPath } from "./metrics.ts";
import { leads, Needs } from "./readiness.ts";
import { startRpc } from "./rpc.ts";
import { provideSecrets } from "./secrets.ts";
import { keyFileOf, startServices } from "./services.ts";

export interface OneProcessOptions {
  config: Config;
  log: Logger;
  /** Knows afterwards how to end everything. */
  lifecycle: Lifecycle;
  /** Called with a sentence when a part ends that all others need. */
  onCrash: (message: string) => void;
}

/**
 * All roles in one process: each part begins when what it needs is there.
 * @throws StartupError; what has been started by then is for the lifecycle to end
 */
export async function startOneProcess(options: OneProcessOptions): Promise<Running> {
  const { config, log, lifecycle } = options;
  const needs = new Needs(lifecycle);
  needs.expect("database", "schema", "orchestrator");
  const metrics = createMetrics("all");
  const admin = await startAdmin(options, [healthPaths(needs), metricsPath(metrics)]);
  await prepareDataDir(config.dataDir);
  const secrets = await provideSecrets(config);
  const { database, url: databaseUrl } = await provideDatabase({
    ...options,
    needs,
    metrics,
    waitsFor: ["schema"],
  });
  const services = await startServices({ ...options, metrics, database, databaseUrl, secrets });
  const { clients, bootstrap, chosen } = services;
  needs.ask("orchestrator", () => leads(clients.orchestrators));
  const gateway = { clients, config: config.gateway, log, metrics, readiness: needs.look };
  const url = await startGateway(gateway, config.gateway, lifecycle);
  const ready = needs.serves;
  const rpc = await startRpc({ config, log, lifecycle, metrics, routes: services.routes, ready });
  return { url, rpc, admin, config, bootstrap, keyFile: keyFileOf(config), engine: chosen };
}
