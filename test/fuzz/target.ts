import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { generateApiKey } from "../../runtime/api-key.ts";
import { DATABASE, startPostgres } from "../../runtime/postgres/server.ts";
import { Child } from "../support/child.ts";
import { createDeployment } from "../support/deployment.ts";
import { freePort } from "../support/ports.ts";

/** `one`: all roles in one process; `separate`: each in its own. */
export const SHAPES = ["one", "separate"] as const;
export type Shape = (typeof SHAPES)[number];

/** The program, on an engine that runs nothing. */
export interface Target {
  url: string;
  apiKey: string;
  processes: Child[];
  close(): Promise<void>;
}

// Requests come as fast as they are answered; a log has what is no client's fault.
const ENV = { ENGINE: "simulated", RATE_LIMIT_PER_SEC: "0", LOG_LEVEL: "warn" };

/** Starts it on an empty database; a folder of its own is gone with it. */
export async function startTarget(shape: Shape, databaseUrl: string): Promise<Target> {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-fuzz-"));
  const started = await (shape === "one" ? startOne : startSeparate)(databaseUrl, dataDir);
  const close = async () => {
    await Promise.all(started.processes.map((child) => child.stop()));
    // The program: it removes paths that are longer than a call may name, which are made here.
    await promisify(execFile)("rm", ["-rf", "--", dataDir]);
  };
  try {
    await ready(started);
  } catch (error) {
    await close();
    throw error;
  }
  return { ...started, close };
}

async function ready({ url, processes }: Pick<Target, "url" | "processes">): Promise<void> {
  while (!(await isReady(url))) {
    const ended = processes.find(({ lives }) => !lives);
    if (ended) throw new Error(`${ended.name} did not start: ${ended.output()}`);
    await sleep(50);
  }
}

async function startOne(databaseUrl: string, dataDir: string) {
  const [port, apiKey] = [await freePort(), generateApiKey()];
  const child = new Child({
    name: "sandgate",
    command: [process.execPath, join(import.meta.dirname, "../../main.ts")],
    env: {
      DATABASE_URL: databaseUrl,
      DATA_DIR: dataDir,
      PORT: String(port),
      BOOTSTRAP_API_KEY: apiKey,
      ...ENV,
    },
    log: join(dataDir, "sandgate.log"),
  });
  child.start();
  return { url: `http://127.0.0.1:${port}`, apiKey, processes: [child] };
}

async function startSeparate(databaseUrl: string, dataDir: string) {
  const deployment = await createDeployment({ databaseUrl, dataDir, env: ENV });
  for (const child of deployment.all) child.start();
  return { url: deployment.url, apiKey: deployment.apiKey, processes: deployment.all };
}

async function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** A PostgreSQL for data that nobody misses, and what ends it. */
export async function startThrowAway() {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-fuzz-db-"));
  const postgres = await startPostgres({ folder, settings: { fsync: "off" } });
  return {
    url: postgres.url(DATABASE),
    stop: async () => {
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
