// Sends good and bad requests of every operation of /openapi.json, and holds each answer against it.
// npm run fuzz -- --seed S --runs N [--shape one|separate] [--workers N]
import { parseArgs } from "node:util";
import { type FuzzReport, fuzz } from "./fuzz.ts";
import { SHAPES, type Shape, startTarget, startThrowAway } from "./target.ts";

// By an exit of its own, which takes the processes that it started with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    runs: { type: "string", default: "10000" },
    shape: { type: "string", default: "one" },
    workers: { type: "string", default: "4" },
  },
});
const shape = SHAPES.find((name) => name === values.shape);
const [seed, runs, workers] = [values.seed, values.runs, values.workers].map(whole);

if (shape === undefined || seed === undefined || !runs || !workers) {
  console.error(
    "npm run fuzz -- --seed S --runs N [--shape one|separate] [--workers N], whole numbers",
  );
  process.exitCode = 2;
} else process.exitCode = await run(shape, { seed, runs, workers });

async function run(shape: Shape, options: { seed: number; runs: number; workers: number }) {
  const database = await startThrowAway();
  try {
    const target = await startTarget(shape, database.url);
    try {
      const report = await fuzz(target, options);
      print(`seed ${options.seed}, shape ${shape}`, report);
      return report.findings.length === 0 ? 0 : 1;
    } finally {
      await target.close();
    }
  } finally {
    await database.stop();
  }
}

function print(
  title: string,
  { requests, good, statuses, stalls, findings, memory }: FuzzReport,
): void {
  const byStatus = [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, n]) => `${status || "none"}: ${n}`);
  const fitting = [...good.values()].reduce((sum, { sent }) => sum + sent, 0);
  const done = [...good.values()].reduce((sum, each) => sum + each.done, 0);
  console.log(
    `${title}: ${requests} requests, ${fitting} of them good, of which ${done} successes`,
  );
  console.log(`answers by status: ${byStatus.join(", ")}`);
  if (stalls > 0) console.log(`${stalls} requests met 502, 503 or 504 and were sent again`);
  for (const [name, [from, to]] of memory)
    console.log(`${name}: ${from} MiB before, ${to} MiB behind`);
  for (const [id, counts] of good)
    if (counts.done === 0) console.log(`no success of ${id} in ${counts.sent}`);
  for (const { operation, fault, curl, answer } of findings)
    console.log(`\nFAULT ${operation}: ${fault}\n  ${curl}\n  ${answer}`);
  console.log(findings.length === 0 ? "no fault" : `\n${findings.length} faults`);
}

function whole(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
