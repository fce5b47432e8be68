// What files cost on their way into volumes and out, beside a plain node:http server and nginx, taken in turn.
// npm run bench:volumes [-- MiB rounds files]
import { execFile } from "node:child_process";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startNginx, startPlainServer } from "./support/file-servers.ts";
import { cpuMs, median, peakMib, timed } from "./support/measure.ts";
import { startBenchProgram } from "./support/program.ts";
import { manyFiles } from "./support/small-files.ts";

const MIB = Number(process.argv[2] ?? 1_024);
const ROUNDS = Number(process.argv[3] ?? 5);
const FILES = Number(process.argv[4] ?? 100_000);

/** Somebody who takes a file and gives it back. */
interface Candidate {
  name: string;
  url: string;
  pid: number;
  headers: Record<string, string>;
  /** Milliseconds, by the clock and of the server's processor. */
  took: Record<"in" | "out", { ms: number[]; cpu: number[] }>;
}

const candidate = (name: string, url: string, pid: number, headers = {}): Candidate => ({
  name,
  url,
  pid,
  headers,
  took: { in: { ms: [], cpu: [] }, out: { ms: [], cpu: [] } },
});

async function curl({ url, headers }: Candidate, ...args: string[]): Promise<void> {
  const named = Object.entries(headers).flatMap(([name, value]) => ["-H", `${name}: ${value}`]);
  await promisify(execFile)("curl", ["-sSf", "-o", "/dev/null", ...named, ...args, url]);
}

async function round(to: Candidate, file: string): Promise<void> {
  for (const [way, args] of [
    ["in", ["-T", file]],
    ["out", []],
  ] as const) {
    const before = await cpuMs(to.pid);
    to.took[way].ms.push(await timed(() => curl(to, ...args)));
    to.took[way].cpu.push((await cpuMs(to.pid)) - before);
  }
}

/** Against the first plain server that does the same: with fdatasync in, without it out. */
function print(all: readonly Candidate[]): void {
  for (const way of ["in", "out"] as const) {
    console.log(`${MIB} MiB ${way}, medians of ${ROUNDS}, taken in turn:`);
    for (const { name, took } of all) {
      const { ms, cpu } = took[way];
      const range = `${Math.min(...ms).toFixed(0)} to ${Math.max(...ms).toFixed(0)}`;
      const ratios = all
        .filter((other) => other.name !== name && name === "sandgate")
        .map((other) => {
          const each = ms.map((value, i) => value / (other.took[way].ms[i] ?? Number.NaN));
          const ofCpu = median(cpu) / median(other.took[way].cpu);
          return `${median(each).toFixed(2)} of ${other.name} (CPU ${ofCpu.toFixed(2)})`;
        });
      const line = `${name.padEnd(16)} ${median(ms).toFixed(0)} ms (${range}), CPU ${median(cpu).toFixed(0)} ms`;
      console.log(`  ${[line, ...ratios].join("; ")}`);
    }
  }
}

/** Bytes that no file system leaves out. */
async function makeFile(path: string): Promise<void> {
  await using handle = await open(path, "w");
  const chunk = crypto.getRandomValues(Buffer.alloc(64 * 1024));
  for (let left = MIB * 16; left > 0; left -= 1) await handle.write(chunk);
}

const folder = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
const program = await startBenchProgram({ ENGINE: "simulated" });
const servers = [await startPlainServer(false), await startPlainServer(true), await startNginx()];
const [plain, synced, nginx] = servers.map(({ url, pid }, i) =>
  candidate(["node", "node, fdatasync", "nginx"][i] ?? "", `${url}/file`, pid),
);
if (!plain || !synced || !nginx) throw new Error("a server is missing");
try {
  const file = join(folder, "file");
  await makeFile(file);
  const { id } = await program.post("/v1/volumes", { name: "bench" });
  const files = `${program.url}/v1/volumes/${id}/files`;
  const { authorization = "" } = program.headers;
  const headers = { authorization, "x-msb-file-path": "ZmlsZQ" };
  const ours = candidate("sandgate", `${files}/content`, program.pid, headers);
  const all = [ours, plain, synced, nginx];
  for (const each of all) await round({ ...each, took: candidate("", "", 0).took }, file);
  for (let i = 0; i < ROUNDS; i += 1) for (const each of all) await round(each, file);
  print(all);
  console.log(`sandgate held ${await peakMib(program.pid)} MiB at most\n`);
  if (FILES > 0) await manyFiles(FILES, files, authorization, servers[1]);
} finally {
  await program.stop();
  for (const server of servers) await server.stop();
  await rm(folder, { recursive: true, force: true });
}
