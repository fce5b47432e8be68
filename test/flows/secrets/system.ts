import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, vi } from "vitest";
import { reachPostgres } from "../../../runtime/postgres/reach.ts";
import { Child } from "../../support/child.ts";
import { createDeployment } from "../../support/deployment.ts";
import { freePort } from "../../support/ports.ts";

/** The whole program in processes of its own, with all that it keeps and writes below one folder. */
export interface System {
  url: string;
  /** Where the organization service takes calls. */
  rpcUrl: string;
  dataDir: string;
  /** The log of what answers clients. */
  gatewayLog: string;
  /** What a command needs to work on the same. */
  env: Record<string, string>;
  databaseUrl(): Promise<string>;
  /** Returns when it serves. */
  start(): Promise<void>;
  stop(): Promise<void>;
  kill(): Promise<void>;
  close(): Promise<void>;
}

export const SHAPES = [
  { shape: "one process", begin: beginOne },
  { shape: "every role in a process of its own", begin: beginRoles },
];

/** @param given settings, for every process */
async function beginOne(given: Record<string, string>): Promise<System> {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-secrets-"));
  const [port, rpcPort] = await Promise.all([freePort(), freePort()]);
  const env = { ...given, DATA_DIR: dataDir, PORT: String(port), RPC_PORT: String(rpcPort) };
  const program = new Child({
    name: "program",
    command: [process.execPath, join(import.meta.dirname, "../../../main.ts")],
    env,
    log: join(dataDir, "program.log"),
  });
  const url = `http://127.0.0.1:${port}`;
  const databaseUrl = async () => {
    const server = await reachPostgres(join(dataDir, "postgres"));
    if (!server.foreign) await server.release();
    expect(server.foreign).toBe(true);
    return server.url;
  };
  const rpcUrl = `http://127.0.0.1:${rpcPort}`;
  return {
    ...ofChildren([program], () => isReady(url), dataDir),
    ...{ url, rpcUrl, dataDir, gatewayLog: "program.log", env, databaseUrl },
  };
}

/** The same with every role apart; its PostgreSQL is this process's. */
async function beginRoles(given: Record<string, string>): Promise<System> {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-secrets-"));
  const server = await reachPostgres(join(dataDir, "postgres"));
  const deployment = await createDeployment({ databaseUrl: server.url, dataDir, env: given });
  const { url, organizationUrl, all, isReady } = deployment;
  const children = ofChildren(all, isReady, dataDir);
  return {
    ...children,
    ...{ url, rpcUrl: organizationUrl, dataDir, gatewayLog: "gateway.log" },
    env: { ...given, DATA_DIR: dataDir, DATABASE_URL: server.url },
    databaseUrl: async () => server.url,
    close: async () => {
      await children.stop();
      await server.release();
      await children.close();
    },
  };
}

const READY = { timeout: 90_000, interval: 100 };

function ofChildren(all: readonly Child[], ready: () => Promise<boolean>, dataDir: string) {
  const each = async (work: (child: Child) => Promise<unknown>) => {
    await Promise.all(all.map(work));
  };
  const stop = () => each((child) => child.stop());
  return {
    start: async () => {
      for (const child of all) child.start();
      await vi.waitUntil(ready, READY);
    },
    stop,
    kill: () => each((child) => child.kill()),
    close: async () => {
      await stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}
