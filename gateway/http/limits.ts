import { createServer } from "node:https";
import type { FastifyServerFactory } from "fastify";
import type { WatchedTls } from "../../runtime/tls/watched.ts";

/** For the head of a request, from the first moment of its connection on. */
const HEADERS_TIMEOUT_MS = 15_000;
/** Until a connection that nothing is asked on is closed; longer than proxies keep theirs. */
const KEEP_ALIVE_MS = 72_000;

/** How long clients may take for what; unset: as above. */
export interface ClientTimes {
  headersMs?: number | undefined;
}

/** Options of the public server: what Node's parser takes, for how long it waits, and TLS. */
export function serverOptions(tls: WatchedTls | undefined, times: ClientTimes) {
  const headersTimeout = times.headersMs ?? HEADERS_TIMEOUT_MS;
  const limits = {
    headersTimeout,
    connectionsCheckingInterval: Math.ceil(headersTimeout / 3),
    // Of all headers, in bytes.
    maxHeaderSize: 16 * 1024,
    // A request without one is refused in the common envelope, see head.ts.
    requireHostHeader: false,
    insecureHTTPParser: false,
  };
  if (!tls) return { http: limits, keepAliveTimeout: KEEP_ALIVE_MS };
  const serverFactory: FastifyServerFactory = (handler) => {
    const own = { ...limits, requestTimeout: 0, keepAliveTimeout: KEEP_ALIVE_MS };
    const handshakeTimeout = headersTimeout;
    const server = createServer({ ...own, handshakeTimeout, ...tls.current }, handler);
    tls.onChange((material) => server.setSecureContext(material));
    return server;
  };
  return { serverFactory };
}
