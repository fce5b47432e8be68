import { createContextValues, type Transport } from "@connectrpc/connect";
import type { Caller } from "../../runtime/caller.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { callerKey } from "../../runtime/rpc/context.ts";
import { createInProcessTransport } from "../../runtime/rpc/in-process.ts";
import { listenRpc, type RpcServerOptions } from "../../runtime/rpc/server.ts";
import { createFakeServices } from "../support/fake-services.ts";

export const TOKEN = "test-service-token";

export const CALLER: Caller = {
  orgId: "019a7c1e-0000-7000-8000-00000000000f",
  actor: { kind: "api_key", api_key_id: "019a7c1e-0000-7000-8000-0000000000aa", name: "Büro ☕" },
  requestId: "req-1",
};

/** Options of a call on behalf of `CALLER`. */
export function asCaller() {
  return { contextValues: createContextValues().set(callerKey, CALLER) };
}

/** A log that keeps what it is told. */
export function createLog() {
  const entries: unknown[] = [];
  return { entries, error: (...entry: unknown[]) => void entries.push(entry) };
}

export interface Rig {
  fake: ReturnType<typeof createFakeServices>;
  log: ReturnType<typeof createLog>;
  transport: Transport;
  close(): Promise<void>;
}

export async function inProcessRig(): Promise<Rig> {
  const fake = createFakeServices();
  const log = createLog();
  const transport = createInProcessTransport(fake.routes, { log, freeze: true });
  return { fake, log, transport, close: async () => {} };
}

export async function socketRig() {
  const server = await startServer();
  const transport = createRemoteTransport({ baseUrl: server.url, token: TOKEN });
  const close = async () => {
    transport.close();
    await server.close();
  };
  return { ...server, transport, close } satisfies Rig;
}

export async function startServer(options: Partial<RpcServerOptions> = {}) {
  const fake = createFakeServices();
  const log = createLog();
  const { port, close } = await listenRpc({
    host: "127.0.0.1",
    port: 0,
    routes: fake.routes,
    tokens: [TOKEN],
    ready: () => true,
    log,
    ...options,
  });
  return { fake, log, port, url: `http://127.0.0.1:${port}`, close };
}
