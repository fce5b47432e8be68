import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A socket before another one, which can go away and come back as if its server did. */
export interface Cuttable {
  /** As in DOCKER_HOST. */
  host: string;
  /** Connections that were made through it. */
  readonly connections: number;
  /** Bytes that came through it from the server. */
  readonly bytes: number;
  /** Breaks every connection and refuses new ones. */
  cut(): void;
  restore(): void;
  close(): Promise<void>;
}

/** @param target such as `unix:///var/run/docker.sock` */
export async function cuttable(target: string): Promise<Cuttable> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-cut-"));
  const path = join(folder, "socket");
  const open = new Set<Socket>();
  const seen = { connections: 0, bytes: 0 };
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    seen.connections += 1;
    const upstream = connect(target.slice("unix://".length));
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket
        .on("error", () => undefined)
        .on("close", () => {
          open.delete(socket);
          client.destroy();
          upstream.destroy();
        });
    }
    upstream.on("data", (chunk) => {
      seen.bytes += chunk.length;
    });
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const cut = () => {
    isCut = true;
    for (const socket of open) socket.destroy();
  };
  return {
    host: `unix://${path}`,
    get connections() {
      return seen.connections;
    },
    get bytes() {
      return seen.bytes;
    },
    cut,
    restore: () => {
      isCut = false;
    },
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}
