import { setTimeout as delay } from "node:timers/promises";
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ConnectRouterOptions,
  type Interceptor,
} from "@connectrpc/connect";
import { fastifyConnectPlugin } from "@connectrpc/connect-fastify";
import { fastify } from "fastify";
import { file_google_rpc_error_details } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { Health } from "../../proto/gen/grpc/health/v1/health_pb.ts";
import type { WatchedTls } from "../tls/watched.ts";
import { healthService } from "./health.ts";
import { type ErrorLog, socketInterceptors } from "./interceptors.ts";
import { type Listener, listen } from "./listener.ts";
import { reflectionRoutes } from "./reflection.ts";
import { collectServices, type Routes } from "./routes.ts";
import { refuse, requireTrust } from "./trust.ts";
import { requestsOf, warmUp } from "./validate.ts";

/** A create carries files. */
const READ_MAX_BYTES = 36 * 1024 * 1024;
/** What anybody may ask needs no more than the name of a service. */
const QUESTION_MAX_BYTES = 4 * 1024;
/** The longest deadline that a call may ask for. */
const MAX_TIMEOUT_MS = 60 * 60 * 1000;
/** How long answers that are ready may take to get out, once the grace is over. */
const FLUSH_MS = 250;

export interface RpcServerOptions {
  host: string;
  /** 0: any free one. */
  port: number;
  routes: Routes;
  /** Service tokens: every call must bear one of them, or come with a certificate that `tls` trusts. */
  tokens: readonly string[];
  /** Undefined: the port speaks no TLS. */
  tls?: WatchedTls | undefined;
  /** Whether calls can be answered now, for grpc.health.v1. */
  ready: () => boolean | Promise<boolean>;
  /** Whether the process is about to end, so that nobody new is to come; calls are answered all the same. */
  leaving?: () => boolean;
  log: ErrorLog;
  /** Before all others, outermost first; they see what callers are answered. */
  interceptors?: readonly Interceptor[];
}

export interface RpcServer {
  /** The port it got. */
  readonly port: number;
  /**
   * Ends endless streams at once, lets other calls finish within the grace, and closes every connection. Once; a second call
   * waits for the first.
   * @param graceMs 5,000 unless set
   */
  close(graceMs?: number): Promise<void>;
}

const GRACE_MS = 5_000;

/**
 * Serves Connect, gRPC and gRPC-Web on one port, over HTTP/2 and HTTP/1.1, with or without TLS, with
 * grpc.health.v1 and server reflection.
 * @throws StartupError where the address cannot be had
 */
export async function listenRpc(options: RpcServerOptions): Promise<RpcServer> {
  const { tokens } = options;
  const closing = new AbortController();
  const stopping = new AbortController();
  const ready = () => !closing.signal.aborted && options.ready();
  const app = fastify({ frameworkErrors: (_error, request, reply) => refuse(request, reply) });
  const contextValues = requireTrust(app, tokens);
  await app.register(fastifyConnectPlugin, {
    routes: allRoutes({ ...options, ready }),
    ...routerOptions(options, closing.signal, stopping.signal),
    contextValues,
  });
  await app.ready();
  const listener = await listen(app, options);

  const close = async (graceMs: number) => {
    closing.abort(shuttingDown());
    await shutDown(listener, graceMs, () => stopping.abort(shuttingDown()));
    await app.close();
  };
  let closed: Promise<void> | undefined;
  return {
    port: listener.port,
    close(graceMs = GRACE_MS) {
      closed ??= close(graceMs);
      return closed;
    },
  };
}

function allRoutes({ routes, ready, leaving = () => false }: RpcServerOptions): Routes {
  const services = collectServices(routes);
  warmUp(services.flatMap(requestsOf));
  const names = services.map(({ typeName }) => typeName);
  const reflection = reflectionRoutes([...services, Health], [file_google_rpc_error_details]);
  return (router: ConnectRouter) => {
    routes(router);
    reflection(router);
    const health = healthService(names, ready, leaving);
    router.service(Health, health, { readMaxBytes: QUESTION_MAX_BYTES });
  };
}

function routerOptions(
  { log, interceptors = [] }: RpcServerOptions,
  closing: AbortSignal,
  stopping: AbortSignal,
): ConnectRouterOptions {
  return {
    interceptors: [...interceptors, ...socketInterceptors(log, closing)],
    shutdownSignal: stopping,
    readMaxBytes: READ_MAX_BYTES,
    maxTimeoutMs: MAX_TIMEOUT_MS,
    acceptCompression: [],
  };
}

async function shutDown(listener: Listener, graceMs: number, abortCalls: () => void) {
  const closedWithin = (ms: number) =>
    Promise.race([listener.closed, delay(ms, undefined, { ref: false })]);
  listener.drain(graceMs);
  await closedWithin(graceMs);
  abortCalls();
  await closedWithin(FLUSH_MS);
  listener.destroy();
  await listener.closed;
}

function shuttingDown(): ConnectError {
  return new ConnectError("the server is shutting down", Code.Unavailable);
}
