import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { migrate } from "../../../prisma/migrate.ts";
import { withClient } from "../../../runtime/postgres/connect.ts";
import type { Engine } from "../../../services/orchestrator/engines/engine.ts";
import type { Child } from "../../support/child.ts";
import { createDeployment, type Deployment } from "../../support/deployment.ts";
import { startDockerHost } from "./docker-host.ts";
import type { LedgerEntry } from "./engine-protocol.ts";
import type { ChaosOptions } from "./options.ts";
import { type KillablePostgres, startKillablePostgres } from "./postgres.ts";
import type { Victim } from "./schedule.ts";
import { startSimulatedHost } from "./simulated-host.ts";
import { WATCH_SAMPLES } from "./volumes/facts.ts";

/** What runs the machines of a chaos run, in processes of its own. */
export interface EngineHost {
  child: Child;
  /** To look at it from outside; made when the database knows its installation. */
  connect(databaseUrl: string): Promise<Engine>;
  setAvailable(available: boolean): Promise<void>;
  /** What is wrong with its machines that the engine itself does not show. */
  faults?(): Promise<string[]>;
  /** Settings of the orchestrators, and their program where it is not `main.ts`. */
  env: Record<string, string>;
  program?: readonly string[];
  /** What a sandbox is made of, beside its name. */
  spec: object;
  /** Path of the file where effective starts are written down. */
  ledger?: string;
  close(): Promise<void>;
}

/** Everything that runs, each part in a process that may be killed. */
export interface ChaosSystem {
  dir: string;
  /** Where volumes lie. */
  volumesDir: string;
  /** Of the gateways. */
  urls: string[];
  databaseUrl: string;
  children: Record<Victim, Child>;
  /** Whether all gateways serve. */
  isReady(): Promise<boolean>;
  host: EngineHost;
  engine: Engine;
  starts(): Promise<LedgerEntry[]>;
  close(): Promise<void>;
}

const SETTINGS = {
  STOP_GRACE_SECS: "1",
  EPHEMERAL_LINGER_SECS: "1",
  ORPHAN_DELAY_SECS: "5",
  // A killed process leaves its calls to the next one, so nobody waits long for them.
  DRAIN_TIMEOUT_SECS: "5",
  VOLUME_MEASURE_SECS: "3",
};
const READY_MS = 120_000;

export async function startSystem(options: ChaosOptions): Promise<ChaosSystem> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-chaos-"));
  const closing: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const part of closing.reverse()) await part();
    if (!options.keep) await rm(dir, { recursive: true, force: true });
  };
  try {
    const postgres = await startKillablePostgres(join(dir, "postgres"));
    closing.push(() => postgres.child.kill());
    await migrate(postgres.url);
    await withClient(postgres.url, (client) => client.query(WATCH_SAMPLES));
    const start = options.engine === "docker" ? startDockerHost : startSimulatedHost;
    const host = await start(dir, options);
    closing.push(host.close);
    const deployment = await deploy(dir, postgres, host);
    closing.push(deployment.close);
    const engine = await host.connect(postgres.url);
    closing.push(() => engine.close());
    return assemble(dir, postgres, host, deployment, engine, close);
  } catch (error) {
    await close();
    throw error;
  }
}

async function deploy(dir: string, postgres: KillablePostgres, host: EngineHost) {
  const deployment = await createDeployment({
    databaseUrl: postgres.url,
    dataDir: dir,
    orchestrators: 2,
    gateways: 2,
    sandboxes: 2,
    billings: 2,
    env: { ...SETTINGS, ...host.env },
    supervised: true,
    ...(host.program && { orchestratorProgram: host.program }),
  });
  for (const child of deployment.all) child.start();
  const until = Date.now() + READY_MS;
  while (!(await deployment.isReady())) {
    if (Date.now() > until) {
      await deployment.close();
      throw new Error("the system did not become ready");
    }
    await sleep(100);
  }
  return deployment;
}

function assemble(
  dir: string,
  postgres: KillablePostgres,
  host: EngineHost,
  deployment: Deployment,
  engine: Engine,
  close: () => Promise<void>,
): ChaosSystem {
  const { urls, sandboxes, organization, gateways, billings, orchestrators, isReady } = deployment;
  const children = {
    ...pair("gateway", gateways),
    ...pair("sandbox", sandboxes),
    organization,
    ...pair("billing", billings),
    ...pair("orchestrator", orchestrators),
    postgres: postgres.child,
    engine: host.child,
  };
  const starts = async () => {
    if (!host.ledger) return [];
    const lines = (await readFile(host.ledger, "utf8")).split("\n").filter(Boolean);
    return lines.map((line) => JSON.parse(line) as LedgerEntry);
  };
  const volumesDir = join(dir, "volumes");
  return {
    dir,
    volumesDir,
    urls,
    databaseUrl: postgres.url,
    children,
    isReady,
    host,
    engine,
    starts,
    close,
  };
}

function pair<Name extends string>(name: Name, [one, two]: Child[]) {
  if (!one || !two) throw new Error(`there are two of ${name}`);
  return { [`${name}-1`]: one, [`${name}-2`]: two } as Record<`${Name}-1` | `${Name}-2`, Child>;
}
