import type { Client } from "@connectrpc/connect";
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { BillingService } from "../proto/gen/billing/v1/billing_service_pb.ts";
import type { OrchestratorService } from "../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import type { VolumeFileService } from "../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import type { OrganizationService } from "../proto/gen/organization/v1/organization_service_pb.ts";
import type { SandboxService } from "../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { VolumeService } from "../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { RateLimitConfig } from "../runtime/config.ts";
import { Metrics } from "../runtime/metrics/metrics.ts";
import type { WatchedTls } from "../runtime/tls/watched.ts";
import { Authenticator } from "./auth.ts";
import { allowOrigins } from "./cors.ts";
import { serveDocs } from "./docs.ts";
import { type Readiness, serveHealth } from "./health.ts";
import { answerAlike, refuseStrays, sendError } from "./http/answers.ts";
import { acceptJson } from "./http/body.ts";
import { answerClientError } from "./http/client-error.ts";
import { prepareEnding } from "./http/ending.ts";
import { EventStreams } from "./http/event-streams.ts";
import { leaveExpectations } from "./http/expectations.ts";
import { checkHeads } from "./http/head.ts";
import { serverOptions } from "./http/limits.ts";
import { Ongoing } from "./http/ongoing.ts";
import { requestId } from "./http/request-id.ts";
import { mount } from "./http/route.ts";
import { collectPaths } from "./http/routing.ts";
import { securityHeaders, sendSecurityHeaders } from "./http/security-headers.ts";
import { limitSlowBodies } from "./http/slow-bodies.ts";
import { Transfers } from "./http/transfers.ts";
import { RateLimits } from "./limits/rate-limits.ts";
import { billingRoutes } from "./v1/billing/routes.ts";
import { eventRoutes } from "./v1/events/routes.ts";
import { organizationRoutes } from "./v1/organization/routes.ts";
import { logsRoute } from "./v1/sandboxes/logs.ts";
import { SandboxReads } from "./v1/sandboxes/reads.ts";
import { sandboxRoutes } from "./v1/sandboxes/routes.ts";
import { fileRoutes } from "./v1/volumes/file-routes.ts";
import { volumeRoutes } from "./v1/volumes/routes.ts";
import { Waits } from "./waits.ts";
import { letBeWatched } from "./watched.ts";

const DEFAULT_RPC_TIMEOUT_MS = 10_000;
// Of a name of 128 characters, each percent-encoded, with room to spare.
const MAX_PATH_PARAM = 4096;

export interface GatewayOptions {
  clients: {
    sandboxes: Client<typeof SandboxService>;
    volumes: Client<typeof VolumeService>;
    organizations: Client<typeof OrganizationService>;
    orchestrators: Client<typeof OrchestratorService>;
    files: Client<typeof VolumeFileService>;
    billing: Client<typeof BillingService>;
  };
  config: {
    /** Origins such as `https://console.example.org`; empty: CORS is off. */
    corsOrigins: readonly string[];
    /** Most waits held at once. */
    waitsMax: number;
    rateLimit: RateLimitConfig;
    /** Addresses and networks whose `X-Forwarded-For` is believed; empty: nobody's. */
    trustedProxies: readonly string[];
    /** Whether a line is logged for each request. */
    logRequests?: boolean;
    /** Deadline of one call to a service; 10,000 where it is not set. */
    rpcTimeoutMs?: number;
    /** How long the head of a request may take; 15,000 where it is not set. */
    headersMs?: number;
    /** How long the body of one may take that carries no file; 120,000 where it is not set. */
    bodyMs?: number;
    /** How long a file may be on its way without a byte; five minutes where it is not set. */
    transferIdleMs?: number;
    /** Most bytes of a file in one message to a service; as they come where it is not set. */
    pieceBytes?: number;
    /** First pause before a broken watch is taken up again; 100 where it is not set. */
    watchBackoffMs?: number;
    /** How long Redis may take to answer before a request passes uncounted; 50 where it is not set. */
    redisPatienceMs?: number;
  };
  log: FastifyBaseLogger;
  /** Of the program; of its own where it is not set. */
  metrics?: Metrics;
  /** What its port speaks TLS with; undefined: it speaks none. */
  tls?: WatchedTls | undefined;
  /** Whether what the gateway needs is there. */
  readiness: () => Promise<Readiness>;
}

/** The public HTTP server, not listening yet; `ending` drains it, `close` at once. */
export function buildApp(options: GatewayOptions): FastifyInstance {
  const { clients, config, log, tls, metrics = new Metrics(), readiness } = options;
  const security = securityHeaders(tls !== undefined);
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    // A child for each request costs as much as its routing, and of most nothing is written: what is names its request itself.
    childLoggerFactory: (logger) => logger,
    genReqId: requestId,
    trustProxy: config.trustedProxies.length > 0 ? [...config.trustedProxies] : false,
    routerOptions: { maxParamLength: MAX_PATH_PARAM },
    // What still comes on an open connection is served, see ending.ts.
    return503OnClosing: false,
    // It is sent without any hook.
    frameworkErrors: (error, request, reply) => sendError(error, request, reply.headers(security)),
    clientErrorHandler: answerClientError,
    ...serverOptions(tls, config),
  });
  const rpcTimeoutMs = config.rpcTimeoutMs ?? DEFAULT_RPC_TIMEOUT_MS;
  const waits = new Waits(config.waitsMax);
  const limits = new RateLimits(config.rateLimit, log, config.redisPatienceMs);
  const authenticator = new Authenticator({
    organizations: clients.organizations,
    timeoutMs: rpcTimeoutMs,
    limits,
    metrics,
    log,
  });
  app.addHook("onReady", async () => {
    waits.start(clients.sandboxes, log, config.watchBackoffMs);
    authenticator.start(config.watchBackoffMs);
    await limits.start();
  });
  const ongoing = new Ongoing();
  prepareEnding(app, waits, ongoing);
  // Requests under way still need both.
  app.addHook("onClose", async () => {
    limits.close();
    await authenticator.close();
  });

  const streams = new EventStreams(ongoing);
  const transfers = new Transfers({
    ongoing,
    whileGood: authenticator.whileGood,
    idleMs: config.transferIdleMs,
  });
  letBeWatched(app, {
    metrics,
    logRequests: config.logRequests === true,
    waits,
    waitsMax: config.waitsMax,
    streams,
    transfers,
  });
  const paths = collectPaths(app);
  leaveExpectations(app);
  acceptJson(app);
  answerAlike(app);
  sendSecurityHeaders(app, security);
  checkHeads(app);
  limitSlowBodies(app, config.bodyMs);
  allowOrigins(app, config.corsOrigins);
  // After CORS: a page may read what it did wrong.
  app.after(() => refuseStrays(app, paths));

  const routes = [
    ...sandboxRoutes({
      sandboxes: clients.sandboxes,
      reads: new SandboxReads(clients.sandboxes, rpcTimeoutMs),
      organizations: clients.organizations,
      waits,
      log,
      rpcTimeoutMs,
    }),
    logsRoute({
      orchestrators: clients.orchestrators,
      streams,
      rpcTimeoutMs,
      whileGood: authenticator.whileGood,
    }),
    ...volumeRoutes({ volumes: clients.volumes, rpcTimeoutMs }),
    ...fileRoutes({
      files: clients.files,
      rpcTimeoutMs,
      pieceBytes: config.pieceBytes,
      transfers,
    }),
    ...organizationRoutes({ organizations: clients.organizations, rpcTimeoutMs }),
    ...eventRoutes({ organizations: clients.organizations, rpcTimeoutMs }),
    ...billingRoutes({ billing: clients.billing, rpcTimeoutMs }),
  ];
  mount(app, routes, authenticator.authenticate);
  serveHealth(app, readiness);
  serveDocs(app, routes);
  return app;
}
