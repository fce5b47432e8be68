// How long `npm start` takes to its first 200, and what the program holds at rest.
// npm run bench:start [-- rounds]
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../test/support/ports.ts";
import { proportionalKib, summary } from "./support/measure.ts";
import { answers } from "./support/program.ts";

const ROUNDS = Number(process.argv[2] ?? 5);
const REST_MS = 5_000;

interface Start {
  msToFirst200: number;
  mibAtRest: number;
}

async function measure(dataDir: string, restMs: number): Promise<Start> {
  const port = await freePort();
  const env = { ...process.env, DATA_DIR: dataDir, PORT: String(port), ENGINE: "simulated" };
  const began = performance.now();
  const npm = spawn("npm", ["start"], { env, stdio: "ignore", detached: true });
  while (!(await answers(`http://127.0.0.1:${port}/readyz`))) await sleep(10);
  const msToFirst200 = performance.now() - began;
  await sleep(restMs);
  const mibAtRest = (await programKib(npm, dataDir)) / 1024;
  if (npm.pid !== undefined) process.kill(-npm.pid, "SIGINT");
  await new Promise((exited) => npm.once("exit", exited));
  return { msToFirst200, mibAtRest };
}

/** Memory of npm, of what it started, and of the PostgreSQL of this folder; pages that are shared count once. */
async function programKib(npm: ChildProcess, dataDir: string): Promise<number> {
  const kib = await Promise.all(
    (await readdir("/proc"))
      .filter((name) => /^\d+$/.test(name))
      .map(async (pid) => ((await belongs(pid, npm, dataDir)) ? proportionalKib(pid) : 0)),
  );
  return kib.reduce((sum, each) => sum + each, 0);
}

async function belongs(pid: string, npm: ChildProcess, dataDir: string): Promise<boolean> {
  const [stat, environment, parent] = await Promise.all([
    read(`/proc/${pid}/stat`),
    read(`/proc/${pid}/environ`),
    read(`/proc/${pid}/cwd/postmaster.pid`),
  ]);
  const group = Number(stat.slice(stat.lastIndexOf(")")).split(" ")[3]);
  return (
    group === npm.pid || environment.includes(`DATA_DIR=${dataDir}`) || parent.includes(dataDir)
  );
}

function read(path: string): Promise<string> {
  return readFile(path, "utf8").catch(() => "");
}

const fresh: Start[] = [];
const existing: Start[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
  fresh.push(await measure(dataDir, 0));
  existing.push(await measure(dataDir, REST_MS));
  await rm(dataDir, { recursive: true, force: true });
}
console.log(`${ROUNDS} rounds, npm start to the first 200 of /readyz, ENGINE=simulated`);
console.log(
  summary(
    "fresh DATA_DIR",
    fresh.map(({ msToFirst200 }) => msToFirst200),
    "ms",
  ),
);
console.log(
  summary(
    "existing DATA_DIR",
    existing.map(({ msToFirst200 }) => msToFirst200),
    "ms",
  ),
);
console.log(
  summary(
    "at rest, all processes",
    existing.map(({ mibAtRest }) => mibAtRest),
    "MiB",
  ),
);
