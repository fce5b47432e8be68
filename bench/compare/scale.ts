import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "../../runtime/postgres/connect.ts";
import { cpuMs, familyCpuMs } from "../support/measure.ts";
import { stockUp } from "./arena.ts";
import { type Alone, type Ground, openGround, pidOf, ready } from "./ground.ts";
import { makeOne, many } from "./make.ts";
import { rssMib } from "./memory.ts";
import type { Options } from "./options.ts";

const FEW = 1_000;
const STARTED_AT_ONCE = 32;
/** The first seconds of a process are no rest yet. */
const SETTLE_MS = 5_000;
const LOOK_MS = 10_000;
const SMALL = {
  image: { type: "oci", reference: "alpine" },
  resources: { vcpus: 1, memory_mib: 64 },
};

/** What a process costs at rest, and what it asks of the database, each second. */
interface Rest {
  rssMib: number;
  cpuPercent: number;
  postgresPercent: number;
  commits: number;
  rowsRead: number;
}

/** How start-up and rest grow with what is in the database, one process on the simulated engine. */
export async function scale(
  { running, scaleRows }: Pick<Options, "running" | "scaleRows">,
  say: (line: string) => void,
): Promise<string[]> {
  const lines: string[] = [];
  for (const size of [FEW, scaleRows]) {
    say(`${size} sandboxes in the database`);
    lines.push(...(await linesOf(size, running)));
  }
  return [
    "**One process with few and with many sandboxes, at rest (the reconcile loop and all other background work)**",
    "",
    "| sandboxes | ready after, ms | RSS, MiB | CPU, % of a core | PostgreSQL, % of a core | commits a second | rows read a second |",
    "|---|---|---|---|---|---|---|",
    ...lines,
  ];
}

async function linesOf(size: number, running: number): Promise<string[]> {
  const ground = await openGround();
  try {
    const one = await ground.alone("one", "main.ts");
    one.child.start();
    await ready(one.isReady);
    await stockUp(ground, one.port, size);
    await halfStopped(ground.databaseUrl);
    await one.child.stop();
    const began = performance.now();
    one.child.start();
    await ready(one.isReady);
    const readyMs = performance.now() - began;
    const resting = await look(ground, one);
    await many(running, STARTED_AT_ONCE, () =>
      makeOne(one.port, ground.apiKey, { query: "?start=true&wait_for=running", body: SMALL }),
    );
    const busy = await look(ground, one);
    return [
      line(`${size} created and stopped`, readyMs.toFixed(0), resting),
      line(`and ${running} running`, "", busy),
    ];
  } finally {
    await ground.close();
  }
}

/** Half of them have run once, and that is metered. */
function halfStopped(databaseUrl: string): Promise<unknown> {
  return withClient(databaseUrl, async (client) => {
    await client.query(`UPDATE sandbox.sandboxes SET status = 'stopped', generation = 1, started_at = created_at,
      stopped_at = created_at WHERE hashtext(name) % 2 = 0`);
    await client.query(`INSERT INTO sandbox.runs (sandbox_id, generation, org_id, vcpus, memory_mib, ephemeral, desired, phase,
        outcome, admitted_at, placed_at, running_at, machine_ended_at, closed_at, metered_at)
      SELECT id, 1, org_id, 1, 512, false, 'stopped', 'ended', 'stopped', created_at, created_at, created_at, created_at,
        created_at, created_at FROM sandbox.sandboxes WHERE status = 'stopped'`);
    await client.query("VACUUM ANALYZE sandbox.sandboxes");
    await client.query("VACUUM ANALYZE sandbox.runs");
  });
}

async function look(ground: Ground, { child }: Alone): Promise<Rest> {
  const pid = pidOf(child);
  const now = async () => ({
    cpu: await cpuMs(pid),
    postgres: await familyCpuMs(ground.postmaster),
    ...(await countersOf(ground.databaseUrl)),
  });
  await sleep(SETTLE_MS);
  const before = await now();
  await sleep(LOOK_MS);
  const behind = await now();
  const each = (name: keyof typeof before) => (behind[name] - before[name]) / (LOOK_MS / 1_000);
  return {
    rssMib: await rssMib(pid),
    cpuPercent: each("cpu") / 10,
    postgresPercent: each("postgres") / 10,
    commits: each("commits"),
    rowsRead: each("rows"),
  };
}

function countersOf(databaseUrl: string): Promise<{ commits: number; rows: number }> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ commits: number; rows: number }>(
      `SELECT xact_commit::float AS commits, (tup_returned + tup_fetched)::float AS rows
       FROM pg_stat_database WHERE datname = current_database()`,
    );
    return rows[0] ?? { commits: Number.NaN, rows: Number.NaN };
  });
}

function line(what: string, readyMs: string, rest: Rest): string {
  const { rssMib: mib, cpuPercent, postgresPercent, commits, rowsRead } = rest;
  const cells = [mib.toFixed(0), cpuPercent.toFixed(1), postgresPercent.toFixed(1)];
  return `| ${[what, readyMs, ...cells, commits.toFixed(1), rowsRead.toFixed(0)].join(" | ")} |`;
}
