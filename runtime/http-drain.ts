import type { Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { Server as TlsServer } from "node:tls";

/** How long a connection that says nothing is kept once the end was announced: a request may be on its way on it. */
const LINGER_MS = 1_000;
const LOOK_MS = 50;

interface Connection {
  /** Answers that are not over. */
  answers: Set<ServerResponse>;
  /** When something was last seen of it, by the process's own clock. */
  movedAt: number;
  bytes: number;
}

/** Lets a server of HTTP/1.1 come to its end without breaking a request off. */
export interface HttpDrain {
  /** From now on every answer says that it is the last of its connection. Everything is still taken. */
  announce(): void;
  /**
   * Takes no new connections; returns when the last one is gone. What comes on those that are open is served.
   * @param ms how much time there is; without any, idle connections are closed at once
   */
  drain(ms: number): Promise<void>;
  /** Leaves a connection to somebody else, who ends it. */
  leave(socket: Socket): void;
  /** Breaks what is still open. */
  destroy(): void;
}

/** @param server not listening yet, or at least without connections */
export function prepareDrain(server: Server): HttpDrain {
  const open = new Map<Socket, Connection>();
  let announcedAt: number | undefined;
  const event = server instanceof TlsServer ? "secureConnection" : "connection";
  server.prependListener(event, (socket: Socket) => {
    open.set(socket, { answers: new Set(), movedAt: performance.now(), bytes: 0 });
    socket.once("close", () => open.delete(socket));
  });
  server.prependListener("request", ({ socket }, response) => {
    const connection = open.get(socket);
    connection?.answers.add(response);
    response.once("close", () => {
      connection?.answers.delete(response);
      if (connection) connection.movedAt = performance.now();
    });
    if (announcedAt !== undefined && connection) makeLast(connection);
  });

  const announce = () => {
    if (announcedAt !== undefined) return;
    announcedAt = performance.now();
    for (const connection of open.values()) makeLast(connection);
  };
  const closeIdle = (lingerMs: number) => {
    const until = performance.now() - lingerMs;
    for (const [socket, connection] of open)
      if (isIdleSince(until, socket, connection, announcedAt)) socket.destroy();
  };
  let drained: Promise<void> | undefined;
  const drain = async (ms: number) => {
    announce();
    const lingerMs = Math.min(LINGER_MS, ms);
    closeIdle(lingerMs);
    const timer = setInterval(closeIdle, LOOK_MS, lingerMs);
    await stopListening(server);
    clearInterval(timer);
    // Ends its own timer.
    server.close();
  };
  return {
    announce,
    drain(ms) {
      drained ??= drain(ms);
      return drained;
    },
    leave: (socket) => void open.delete(socket),
    destroy() {
      for (const socket of open.keys()) socket.destroy();
      server.closeAllConnections();
    },
  };
}

/** It has been silent from then on, also since the end was announced, and nobody waits for an answer. */
function isIdleSince(then: number, socket: Socket, connection: Connection, announcedAt = 0) {
  if (connection.bytes !== socket.bytesRead) {
    connection.bytes = socket.bytesRead;
    connection.movedAt = performance.now();
  }
  return connection.answers.size === 0 && Math.max(connection.movedAt, announcedAt) <= then;
}

/** Lets the last of its answers say that it is that. One that is on its way already has said what it says. */
function makeLast({ answers }: Connection): void {
  const all = [...answers];
  for (const answer of all) {
    if (answer.headersSent) continue;
    if (answer === all.at(-1)) answer.setHeader("connection", "close");
    else answer.removeHeader("connection");
  }
}

/** An HTTP server's own `close` would break idle connections off at once, with what is on its way to them. */
function stopListening(server: Server): Promise<void> {
  return new Promise((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });
}
