import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import type { Database } from "../prisma/database.ts";
import { BillingService } from "../proto/gen/billing/v1/billing_service_pb.ts";
import { OrchestratorService } from "../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { VolumeFileService } from "../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { OrganizationService } from "../proto/gen/organization/v1/organization_service_pb.ts";
import { SandboxService } from "../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { VolumeService } from "../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Config } from "../runtime/config.ts";
import type { Lifecycle } from "../runtime/lifecycle.ts";
import type { Logger } from "../runtime/log.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { countServerCalls } from "../runtime/metrics/rpc.ts";
import { createInProcessTransport } from "../runtime/rpc/in-process.ts";
import type { Routes } from "../runtime/rpc/routes.ts";
import type { Secrets } from "../runtime/secrets.ts";
import { seldom } from "../runtime/seldom.ts";
import { traceMemoryCall } from "../runtime/tracing/rpc.ts";
import { startBillingService } from "../services/billing/start.ts";
import { startOrchestratorService } from "../services/orchestrator/start.ts";
import type { BootstrapResult } from "../services/organization/bootstrap.ts";
import { startOrganizationService } from "../services/organization/start.ts";
import { startSandboxService } from "../services/sandbox/start.ts";
import { type ChosenEngine, chooseEngine } from "./engine.ts";

export interface ServicesOptions {
  config: Config;
  log: Logger;
  lifecycle: Lifecycle;
  metrics: Metrics;
  database: Database;
  databaseUrl: string;
  secrets: Secrets;
}

/** Every service, running, and how to reach it. */
export interface Services {
  clients: {
    sandboxes: Client<typeof SandboxService>;
    volumes: Client<typeof VolumeService>;
    organizations: Client<typeof OrganizationService>;
    orchestrators: Client<typeof OrchestratorService>;
    files: Client<typeof VolumeFileService>;
    billing: Client<typeof BillingService>;
  };
  /** For a port of their own. */
  routes: Routes;
  bootstrap: BootstrapResult;
  chosen: ChosenEngine;
}

/** @throws StartupError */
export async function startServices(options: ServicesOptions): Promise<Services> {
  const { config, log, metrics, database } = options;
  const organization = await startOrganizations(options);
  const sandbox = await startSandboxes(options);
  const chosen = await chooseEngine(config.engine, database, log);
  const sandboxRoutes: Routes = (router) =>
    router.service(SandboxService, sandbox.service).service(VolumeService, sandbox.volumes);
  const inProcess = { log, interceptors: [traceMemoryCall, countServerCalls(metrics)] };
  const toSandboxes = createInProcessTransport(sandboxRoutes, inProcess);
  const sandboxes = createClient(SandboxService, toSandboxes);
  const volumes = createClient(VolumeService, toSandboxes);
  const orchestrator = await startOrchestrators(options, chosen, { sandboxes, volumes });
  const billing = await startBilling(options, sandboxes);
  const routes: Routes = (router) => {
    sandboxRoutes(router);
    router.service(OrganizationService, organization.service);
    router.service(OrchestratorService, orchestrator.service);
    router.service(VolumeFileService, orchestrator.files);
    router.service(BillingService, billing.service);
  };
  const transport = createInProcessTransport(routes, inProcess);
  const clients = {
    sandboxes,
    volumes,
    organizations: createClient(OrganizationService, transport),
    orchestrators: createClient(OrchestratorService, transport),
    files: createClient(VolumeFileService, transport),
    billing: createClient(BillingService, transport),
  };
  return { clients, routes, bootstrap: organization.bootstrap, chosen };
}

/** What background work that fails goes on failing with is not said every time. */
function complaints(log: Logger, service: string) {
  return seldom((err, unsaid) =>
    log.error({ err, ...unsaid }, `the ${service} service's background work failed`),
  );
}

/** Where a generated key is kept. */
export function keyFileOf({ dataDir }: Config): string {
  return join(dataDir, "api-key");
}

/** @throws StartupError */
export function startOrganizations({
  config,
  log,
  lifecycle,
  database,
  databaseUrl,
  secrets,
}: ServicesOptions) {
  return lifecycle.start("organization service", {
    start: () =>
      startOrganizationService({
        database,
        databaseUrl,
        sign: (data) => secrets.hmac("cursor", data),
        bootstrapApiKey: config.bootstrapApiKey,
        keyFile: keyFileOf(config),
        eventRetentionDays: config.organization.eventRetentionDays,
        onError: complaints(log, "organization"),
      }),
    end: (service) => service.stop(),
  });
}

export function startSandboxes({
  config,
  log,
  lifecycle,
  database,
  databaseUrl,
  secrets,
}: ServicesOptions) {
  return lifecycle.start("sandbox service", {
    start: () =>
      startSandboxService({
        database,
        databaseUrl,
        seal: secrets.seal,
        sign: (data) => secrets.hmac("cursor", data),
        hashRequest: (sha256) => secrets.hmac("idempotency", sha256),
        lingerSecs: config.orchestrator.ephemeralLingerSecs,
        onError: complaints(log, "sandbox"),
      }),
    end: (service) => service.stop(),
  });
}

export function startOrchestrators(
  { config, log, lifecycle, metrics, database, databaseUrl, secrets }: ServicesOptions,
  { engine }: ChosenEngine,
  to: { sandboxes: Client<typeof SandboxService>; volumes: Client<typeof VolumeService> },
) {
  const limits = { ...config.orchestrator, stopGraceMs: config.orchestrator.stopGraceSecs * 1_000 };
  const { unseal } = secrets;
  return lifecycle.start("orchestrator", {
    start: () =>
      startOrchestratorService({
        database,
        databaseUrl,
        ...to,
        engine,
        log,
        unseal,
        hashRequest: (sha256) => secrets.hmac("idempotency", sha256),
        limits,
        metrics,
      }),
    end: (service) => service.stop(),
  });
}

export function startBilling(
  {
    config,
    log,
    lifecycle,
    metrics,
    database,
  }: Pick<ServicesOptions, "config" | "log" | "lifecycle" | "metrics" | "database">,
  sandboxes: Client<typeof SandboxService>,
) {
  return lifecycle.start("billing service", {
    start: () =>
      startBillingService({
        database,
        sandboxes,
        poolGraceSecs: config.billing.poolGraceSecs,
        metrics,
        onError: complaints(log, "billing"),
      }),
    end: (service) => service.stop(),
  });
}
