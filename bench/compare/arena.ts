import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../runtime/api-key.ts";
import { DATABASE, startPostgres } from "../../runtime/postgres/server.ts";
import { Child } from "../../test/support/child.ts";
import { comeTrue } from "../../test/support/come-true.ts";
import { createDeployment } from "../../test/support/deployment.ts";
import { freePort } from "../../test/support/ports.ts";
import { answers } from "../support/program.ts";
import type { Running } from "./contenders.ts";
import { fill, postmasterOf, type Stock } from "./database.ts";
import { BODY } from "./spec.ts";

/** Every contender, running on one PostgreSQL server and one database. */
export interface Arena {
  running: Running;
  stock: Stock;
  databaseUrl: string;
  postmaster: number;
  close(): Promise<void>;
}

/** As `npm start` has it. */
const NODE_OPTIONS = "--max-semi-space-size=16";

/** @param count sandboxes of the one organization */
export async function openArena(count: number): Promise<Arena> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
  const dataDir = join(folder, "data");
  await mkdir(dataDir);
  const postgres = await startPostgres({
    folder: join(folder, "postgres"),
    // One pool each.
    settings: { max_connections: "120" },
  });
  const close = async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const databaseUrl = postgres.url(DATABASE);
    const started = await startAll(databaseUrl, dataDir);
    const stock = await stockUp(started, databaseUrl, count);
    return {
      running: started.running,
      stock,
      databaseUrl,
      postmaster: await postmasterOf(join(folder, "postgres")),
      close: async () => {
        await started.stop();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

type Started = Awaited<ReturnType<typeof startAll>>;

async function startAll(databaseUrl: string, dataDir: string) {
  const [apiKey, serviceToken] = [generateApiKey(), randomBytes(32).toString("hex")];
  const env = {
    NODE_OPTIONS,
    DATABASE_URL: databaseUrl,
    DATA_DIR: dataDir,
    SECRETS_KEY: randomBytes(32).toString("hex"),
    SERVICE_TOKEN: serviceToken,
    BOOTSTRAP_API_KEY: apiKey,
    ENGINE: "simulated",
    LOG_LEVEL: "error",
    RATE_LIMIT_PER_SEC: "0",
    // So that requests can come from many addresses.
    TRUSTED_PROXIES: "127.0.0.1",
  };
  const alone = async (name: string, ...program: string[]) => {
    const port = await freePort();
    const command = [process.execPath, ...program];
    const log = join(dataDir, `${name}.log`);
    const child = new Child({ name, command, env: { ...env, PORT: String(port) }, log });
    return { child, port };
  };
  const one = await alone("one", "main.ts");
  const pg = await alone("pg", "bench/contenders/main.ts", "pg");
  const prisma = await alone("prisma", "bench/contenders/main.ts", "prisma");
  const roles = await createDeployment({ databaseUrl, dataDir, env });
  // The schema is made by one of them alone.
  one.child.start();
  await comeTrue(() => answers(`http://127.0.0.1:${one.port}/readyz`));
  const others = [pg.child, prisma.child, ...roles.all];
  for (const child of others) child.start();
  await comeTrue(() => roles.isReady());
  const at = ({ child, port }: typeof one) => ({ pid: pidOf(child), port });
  const running: Running = {
    one: at(one),
    pg: at(pg),
    prisma: at(prisma),
    separate: {
      gateway: pidOf(roles.gateway),
      service: pidOf(roles.sandbox),
      others: [roles.organization, ...roles.billings, ...roles.orchestrators].map(pidOf),
      port: Number(new URL(roles.url).port),
      rpcPort: Number(roles.rpc.sandbox.split(":")[1]),
    },
  };
  const stop = async () => {
    await Promise.all([one.child, ...others].map((child) => child.stop()));
  };
  return { running, apiKey, serviceToken, stop };
}

async function stockUp(
  { running, apiKey, serviceToken }: Started,
  databaseUrl: string,
  count: number,
): Promise<Stock> {
  const request = {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(BODY),
  };
  const answer = await fetch(`http://127.0.0.1:${running.one.port}/v1/sandboxes`, request);
  const made = (await answer.json()) as { id: string; org_id: string };
  if (!answer.ok) throw new Error(JSON.stringify(made));
  return {
    apiKey,
    wrongKey: generateApiKey(),
    serviceToken,
    wrongToken: randomBytes(32).toString("hex"),
    orgId: made.org_id,
    ...(await fill(databaseUrl, made.id, count)),
  };
}

function pidOf({ pid, name }: Child): number {
  if (pid === undefined) throw new Error(`${name} does not run`);
  return pid;
}
