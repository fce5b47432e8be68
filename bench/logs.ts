// What followers of logs cost that have nothing to read: memory each, timers, and time of the processor.
// npm run bench:logs [-- followers]
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { startOneProcess } from "../app/one-process.ts";
import { generateApiKey } from "../runtime/api-key.ts";
import { readConfig } from "../runtime/env.ts";
import { Lifecycle } from "../runtime/lifecycle.ts";

const FOLLOWERS = Number(process.argv[2] ?? 2_000);
const RUNS = 200;
// Two heartbeats.
const IDLE_MS = 30_000;

interface Use {
  rssKib: number;
  heapKib: number;
  timers: number;
}

/** The clients' side, in a process of its own. */
async function follow(url: string, key: string, ids: string[], count: number): Promise<void> {
  const headers = { authorization: `Bearer ${key}` };
  const opened = Array.from({ length: count }, (_, i) => {
    const path = `/v1/sandboxes/${ids[i % ids.length]}/logs`;
    const request = get(new URL(path, url), { headers, agent: false }, (response) =>
      response.resume(),
    );
    return once(request, "response");
  });
  await Promise.all(opened);
  process.send?.("open");
}

function use(): Use {
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  return { rssKib: rss / 1024, heapKib: (heapUsed + external) / 1024, timers };
}

async function settledUse(): Promise<Use> {
  for (let i = 0; i < 3; i += 1) {
    use();
    await sleep(500);
  }
  return use();
}

async function create(url: string, key: string): Promise<string> {
  const response = await fetch(`${url}/v1/sandboxes?start=true&wait_for=running`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ image: { type: "oci", reference: "alpine" } }),
  });
  return ((await response.json()) as { id: string }).id;
}

async function measure(url: string, key: string, ids: string[]): Promise<void> {
  const before = await settledUse();
  const args = ["follow", url, key, JSON.stringify(ids), String(FOLLOWERS)];
  const clients: ChildProcess = fork(import.meta.filename, args);
  await once(clients, "message");
  const after = await settledUse();
  const cpu = process.cpuUsage();
  await sleep(IDLE_MS);
  const { user, system } = process.cpuUsage(cpu);
  clients.kill();
  await once(clients, "exit");
  await sleep(1_000);
  const left = await settledUse();
  const each = (a: number, b: number) => `${((b - a) / FOLLOWERS).toFixed(1)} KiB`;
  const ms = ((user + system) / 1_000 / (IDLE_MS / 1_000)).toFixed(1);
  console.log(
    `${FOLLOWERS} idle followers of ${ids.length} run(s): each ${each(before.heapKib, after.heapKib)} of heap,`,
    `${each(before.rssKib, after.rssKib)} resident; timers more: ${after.timers - before.timers};`,
    `${ms} ms of processor a second; heap that stays: ${each(before.heapKib, left.heapKib)} each`,
  );
}

async function main(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
  const key = generateApiKey();
  const env = {
    DATA_DIR: dataDir,
    PORT: "0",
    ENGINE: "simulated",
    BOOTSTRAP_API_KEY: key,
    RATE_LIMIT_PER_SEC: "0",
  };
  const log = pino({ level: "silent" });
  const lifecycle = new Lifecycle(log);
  const onCrash = (message: string) => {
    throw new Error(message);
  };
  const { url } = await startOneProcess({ config: readConfig(env), log, lifecycle, onCrash });
  const ids: string[] = [];
  for (let i = 0; i < RUNS; i += 1) ids.push(await create(url, key));
  await measure(url, key, ids.slice(0, 1));
  await measure(url, key, ids);
  await lifecycle.stop(10_000);
  await rm(dataDir, { recursive: true, force: true });
}

const [mode, url = "", key = "", ids = "[]", count = ""] = process.argv.slice(2);
if (mode === "follow") await follow(url, key, JSON.parse(ids), Number(count));
else await main();
