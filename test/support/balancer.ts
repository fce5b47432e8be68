import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

const PROBE_MS = 100;

export interface Backend {
  port: number;
  /** Whether it is to get new connections. */
  isReady(): Promise<boolean>;
}

/** Passes TCP connections on, as a Kubernetes service does: new ones to who is ready in turn, and those that are open stay. */
export interface Balancer {
  url: string;
  /** How many backends are ready. */
  ready(): number;
  close(): void;
}

export async function startBalancer(backends: readonly Backend[]): Promise<Balancer> {
  const ready = new Set<Backend>();
  const open = new Set<Socket>();
  const end = new AbortController();
  let turn = 0;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    // Who cannot be reached is left out, so that one that has just gone costs nobody a connection.
    const inTurn = [...ready].map((_, i, all) => all[(turn + i) % all.length] as Backend);
    turn += 1;
    void pass(
      client.on("error", () => undefined),
      inTurn,
      open,
    );
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  for (const backend of backends) void probe(backend, ready, end.signal);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ready: () => ready.size,
    close() {
      end.abort();
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

async function probe(backend: Backend, ready: Set<Backend>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (await backend.isReady()) ready.add(backend);
    else ready.delete(backend);
    await sleep(PROBE_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function pass(client: Socket, backends: readonly Backend[], open: Set<Socket>) {
  for (const { port } of backends) {
    const upstream = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    try {
      await once(upstream, "connect");
    } catch {
      continue;
    }
    join(client, upstream, open);
    join(upstream, client, open);
    return;
  }
  client.resetAndDestroy();
}

/** Passes on what comes, its end, and that it broke. */
function join(from: Socket, to: Socket, open: Set<Socket>): void {
  open.add(from);
  from
    .on("error", () => to.resetAndDestroy())
    .once("close", () => {
      open.delete(from);
      to.destroySoon();
    })
    .pipe(to);
}
