import { createServer as createHttp1Server, type Server } from "node:http";
import { createServer as createHttp2Server, type ServerHttp2Session } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { FastifyInstance } from "fastify";
import { BACKLOG } from "../backlog.ts";
import { StartupError } from "../errors.ts";
import { prepareDrain } from "../http-drain.ts";
import type { WatchedTls } from "../tls/watched.ts";
import { widen } from "./windows.ts";

/** What every HTTP/2 connection without TLS begins with, and no HTTP/1.1 request that is served. */
const PREFACE = Buffer.from("PRI");
/** How long a connection may say nothing at first, in milliseconds. */
const FIRST_BYTES_TIMEOUT_MS = 10_000;
const PING_INTERVAL_MS = 30_000;

const TLS_OPTIONS = {
  ALPNProtocols: ["h2", "http/1.1"],
  handshakeTimeout: FIRST_BYTES_TIMEOUT_MS,
  // A certificate is one way to be trusted, and trust.ts knows the other.
  requestCert: true,
  rejectUnauthorized: false,
};

const HTTP2_OPTIONS = {
  // Large creates in flight at once; the default of 10 would refuse new calls meanwhile.
  maxSessionMemory: 128,
  settings: { maxConcurrentStreams: 4_096, initialWindowSize: 1024 * 1024 },
};

export interface Address {
  host: string;
  /** 0: any free one. */
  port: number;
  /** Undefined: no TLS. */
  tls?: WatchedTls | undefined;
}

/** A listening port that speaks HTTP/1.1 and HTTP/2. */
export interface Listener {
  /** The port it got. */
  readonly port: number;
  /** Settles when it no longer listens and every connection is closed. */
  readonly closed: Promise<void>;
  /**
   * Takes no new connections, and tells peers to call elsewhere; connections close as their last call ends.
   * @param ms how much time there is
   */
  drain(ms: number): void;
  /** Breaks what is still open. */
  destroy(): void;
}

/**
 * Serves `app`, which is ready but does not listen itself, and hands each connection to the server
 * whose protocol its first bytes speak, or its TLS has agreed upon.
 * @throws StartupError where the address cannot be had
 */
export async function listen(app: FastifyInstance, address: Address): Promise<Listener> {
  const { host, port, tls } = address;
  const http1 = createHttp1(app, tls);
  // Node's compatibility layer gives HTTP/2 requests the shape that Fastify was typed for.
  const http2 = createHttp2Server(HTTP2_OPTIONS, app.routing as never);
  const sessions = track<ServerHttp2Session>((add) => http2.on("session", add));
  http2.on("session", keepAlive).on("session", widen);

  // The HTTP/1.1 server listens for both, and so keeps its timeouts and its idle connections. What
  // Node's own listener does for each connection is put off until the protocol is known.
  const event = tls ? "secureConnection" : "connection";
  const serveHttp1 = http1.listeners(event)[0] as (socket: Socket) => void;
  const serve = (socket: Socket, isHttp2: boolean) => {
    if (isHttp2) {
      http1Drain.leave(socket);
      socket.allowHalfOpen = false;
      http2.emit("connection", socket);
    } else {
      serveHttp1.call(http1, socket);
      socket.resume();
    }
  };
  http1.removeAllListeners(event).on(event, (socket: Socket | TLSSocket) => {
    if ("alpnProtocol" in socket) return serve(socket, socket.alpnProtocol === "h2");
    firstBytes(socket, (isHttp2) => serve(socket, isHttp2));
  });
  const http1Drain = prepareDrain(http1);
  const sockets = track<Socket>((add) => http1.on("connection", add));
  await listening(http1, host, port);
  return {
    port: (http1.address() as AddressInfo).port,
    closed: new Promise((resolve) => http1.once("close", resolve)),
    drain(ms) {
      void http1Drain.drain(ms);
      // The GOAWAY names the last call that is served. A client takes later ones, which crossed it on their way, for refused:
      // nobody has begun with them. (After a GOAWAY that refuses none, Node's idle sessions do not read what comes.)
      http2.on("session", (session) => session.close());
      for (const session of sessions) session.close();
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}

function createHttp1({ routing }: FastifyInstance, tls: WatchedTls | undefined): Server {
  // However long a request takes to come in: files are sent. Its headers still have their time limit.
  const untimed = { requestTimeout: 0 };
  if (!tls) return createHttp1Server(untimed, routing);
  const https = createHttpsServer({ ...untimed, ...TLS_OPTIONS, ...tls.current }, routing);
  tls.onChange((material) => https.setSecureContext(material));
  return https;
}

function firstBytes(socket: Socket, decide: (isHttp2: boolean) => void): void {
  let seen = Buffer.alloc(0);
  // A connection that breaks, or says nothing, before a server takes it over is nobody's loss.
  const drop = () => socket.destroy();
  socket.on("error", drop).setTimeout(FIRST_BYTES_TIMEOUT_MS, drop);
  socket.on("data", function onData(chunk: Buffer) {
    seen = Buffer.concat([seen, chunk]);
    const known = Math.min(seen.length, PREFACE.length);
    const fits = seen.subarray(0, known).equals(PREFACE.subarray(0, known));
    if (fits && known < PREFACE.length) return;
    socket.off("data", onData).off("error", drop).off("timeout", drop).setTimeout(0).pause();
    socket.unshift(seen);
    decide(fits);
  });
}

/** A peer that vanished without a word would else hold its streams for ever. */
function keepAlive(session: ServerHttp2Session): void {
  let answered = true;
  const timer = setInterval(() => {
    if (!answered) return session.destroy();
    answered = false;
    session.ping(() => {
      answered = true;
    });
  }, PING_INTERVAL_MS).unref();
  session.once("close", () => clearInterval(timer));
}

/** What is open of what `subscribe` reports. */
function track<T extends Socket | ServerHttp2Session>(
  subscribe: (add: (item: T) => void) => void,
): ReadonlySet<T> {
  const open = new Set<T>();
  subscribe((item) => {
    open.add(item);
    item.once("close", () => open.delete(item));
  });
  return open;
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const onError = ({ message }: Error) =>
      reject(new StartupError(`Cannot listen for RPC on ${host}:${port}: ${message}.`));
    server.once("error", onError).listen({ port, host, backlog: BACKLOG }, () => {
      server.off("error", onError);
      resolve();
    });
  });
}
