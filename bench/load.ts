// Mixed work at a steady rate against all roles in processes of their own: errors, times, and whether memory stays flat.
// npm run load -- --minutes M [--rate N] [--connections N] [--seed S] [--gateways N]
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DATABASE, startPostgres } from "../runtime/postgres/server.ts";
import { comeTrue } from "../test/support/come-true.ts";
import { createDeployment, type Deployment } from "../test/support/deployment.ts";
import { randomFrom } from "../test/support/random.ts";
import { Caller } from "./load/call.ts";
import { countRows, lookAtDatabase, settle } from "./load/database.ts";
import { type LoadOptions, readOptions } from "./load/options.ts";
import { work } from "./load/pace.ts";
import { Watch } from "./load/processes.ts";
import { faultsOf, type LoadReport, print } from "./load/report.ts";
import { Results } from "./load/results.ts";
import { troublesOf } from "./load/troubles.ts";
import { World } from "./load/world.ts";

/** Code is compiled, pools and caches are filled, the population is there. */
const WARM_UP_SHARE = 0.2;
const LEAST_WARM_UP_MS = 30_000;

// By an exit of its own, which takes the processes that it started with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

try {
  const report = await load(readOptions(process.argv.slice(2)));
  print(report);
  process.exitCode = faultsOf(report).length === 0 ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}

async function load(options: LoadOptions): Promise<LoadReport> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-load-"));
  const [dataDir, probes] = [join(folder, "data"), join(folder, "probes")];
  await Promise.all([mkdir(dataDir), mkdir(probes)]);
  const postgres = await startPostgres({ folder: join(folder, "postgres") });
  const databaseUrl = postgres.url(DATABASE);
  const deployment = await createDeployment({
    databaseUrl,
    dataDir,
    gateways: options.gateways,
    env: {
      NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "load/probe.ts"))}`,
      LOAD_PROBE_FOLDER: probes,
      RATE_LIMIT_PER_SEC: "0",
    },
  });
  try {
    for (const child of deployment.all) child.start();
    await comeTrue(() => deployment.isReady());
    return await measure(options, deployment, databaseUrl, probes);
  } finally {
    await deployment.close();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(
  options: LoadOptions,
  deployment: Deployment,
  databaseUrl: string,
  probes: string,
): Promise<LoadReport> {
  const caller = new Caller(deployment.urls, deployment.apiKey, options.connections);
  const context = { world: new World(randomFrom(options.seed)), caller };
  const watch = new Watch(deployment.all, probes);
  const forMs = options.minutes * 60_000;
  const warmUpMs = Math.max(LEAST_WARM_UP_MS, forMs * WARM_UP_SHARE);
  const warmUp = new Results();
  await work(context, warmUp, { ...options, forMs: warmUpMs });
  await settle(databaseUrl);
  const rowsBefore = await countRows(databaseUrl);
  const before = await watch.probe();
  const databaseBefore = await lookAtDatabase(databaseUrl);
  watch.start();
  const results = new Results();
  const { tookMs } = await work(context, results, { ...options, forMs });
  await watch.stop();
  const database = await lookAtDatabase(databaseUrl);
  const unsettled = await settle(databaseUrl);
  const behind = await watch.probe();
  caller.close();
  return {
    options,
    warmUpMs,
    tookMs,
    warmUp,
    results,
    held: [...behind].map(([name, line]) => watch.held(name, before.get(name) ?? line, line)),
    rows: { before: rowsBefore, behind: await countRows(databaseUrl) },
    database: { ...database, grewMib: database.mib - databaseBefore.mib },
    unsettled,
    troubles: deployment.all.flatMap(troublesOf),
  };
}
