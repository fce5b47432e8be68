import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../runtime/api-key.ts";
import { DATABASE, startPostgres } from "../../runtime/postgres/server.ts";
import { Child } from "../../test/support/child.ts";
import { createDeployment } from "../../test/support/deployment.ts";
import { freePort } from "../../test/support/ports.ts";
import { answers } from "../support/program.ts";
import { postmasterOf } from "./database.ts";

/** A PostgreSQL server with its durability, and settings that all share who are started on it. */
export interface Ground {
  databaseUrl: string;
  postmaster: number;
  apiKey: string;
  serviceToken: string;
  /** In hexadecimal. */
  secretsKey: string;
  /** A program of one process, not started yet. */
  alone(name: string, ...program: string[]): Promise<Alone>;
  /** Every role in a process of its own, none started yet. */
  roles(): ReturnType<typeof createDeployment>;
  /** Ends the programs, then the server. */
  close(): Promise<void>;
}

export interface Alone {
  child: Child;
  port: number;
  isReady(): Promise<boolean>;
}

/** As `npm start` has it. */
const NODE_OPTIONS = "--max-semi-space-size=16";

/** @param settings of every program, beside those that all need */
export async function openGround(settings: Record<string, string> = {}): Promise<Ground> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
  const [dataDir, own] = [join(folder, "data"), join(folder, "postgres")];
  await mkdir(dataDir);
  // Many pools at once.
  const postgres = await startPostgres({ folder: own, settings: { max_connections: "120" } });
  const databaseUrl = postgres.url(DATABASE);
  const secrets = {
    apiKey: generateApiKey(),
    serviceToken: randomBytes(32).toString("hex"),
    secretsKey: randomBytes(32).toString("hex"),
  };
  const env = {
    ...environment(secrets),
    DATABASE_URL: databaseUrl,
    DATA_DIR: dataDir,
    ...settings,
  };
  const children: Child[] = [];
  const postmaster = await postmasterOf(own);
  const drop = () => abandon(postmaster, folder);
  process.on("exit", drop);
  return {
    ...secrets,
    databaseUrl,
    postmaster,
    alone: async (name, ...program) => {
      const port = await freePort();
      const command = [process.execPath, ...program];
      const log = join(dataDir, `${name}.log`);
      const child = new Child({ name, command, env: { ...env, PORT: String(port) }, log });
      children.push(child);
      return { child, port, isReady: () => answers(`http://127.0.0.1:${port}/readyz`) };
    },
    roles: async () => {
      const roles = await createDeployment({ databaseUrl, dataDir, env });
      children.push(...roles.all);
      return roles;
    },
    close: async () => {
      await Promise.all(children.map((child) => child.stop()));
      process.off("exit", drop);
      await postgres.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Where there is no time left for an orderly end. */
function abandon(postmaster: number, folder: string): void {
  process.kill(postmaster, "SIGQUIT");
  const bell = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; existsSync(`/proc/${postmaster}`) && tries < 20; tries += 1)
    Atomics.wait(bell, 0, 0, 100);
  rmSync(folder, { recursive: true, force: true });
}

function environment(secrets: Pick<Ground, "apiKey" | "serviceToken" | "secretsKey">) {
  return {
    NODE_OPTIONS,
    SECRETS_KEY: secrets.secretsKey,
    SERVICE_TOKEN: secrets.serviceToken,
    BOOTSTRAP_API_KEY: secrets.apiKey,
    ENGINE: "simulated",
    LOG_LEVEL: "error",
    RATE_LIMIT_PER_SEC: "0",
  };
}

export function pidOf({ pid, name }: Child): number {
  if (pid === undefined) throw new Error(`${name} does not run`);
  return pid;
}

/** Waits as long as a machine with much to do may take to start. */
export async function ready(isReady: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 120_000;
  while (!(await isReady())) {
    if (performance.now() > end) throw new Error("a contender did not start");
    await new Promise((again) => setTimeout(again, 5));
  }
}
