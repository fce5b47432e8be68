// What GET /v1/sandboxes/{id} costs the program's process: its CPU time a request, with and without rate limits.
// npm run bench:reads [-- requests]
import { readFile } from "node:fs/promises";
import { Agent, get } from "node:http";
import { median } from "./support/measure.ts";
import { type BenchProgram, startBenchProgram } from "./support/program.ts";

const REQUESTS = Number(process.argv[2] ?? 5_000);
const AT_ONCE = 16;
const ROUNDS = 7;
/** Of /proc/<pid>/stat. */
const TICK_US = 10_000;
const BODY = { image: { type: "oci", reference: "alpine" } };

for (const limit of ["0", "1000000"]) await bench(limit);

async function bench(limit: string): Promise<void> {
  const limits = { RATE_LIMIT_PER_SEC: limit, RATE_LIMIT_BURST: "1000000" };
  const program = await startBenchProgram({ ENGINE: "simulated", ...limits });
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  try {
    const { id } = await program.post("/v1/sandboxes", BODY);
    const read = () => readOnce(program, agent, `/v1/sandboxes/${id}`);
    await many(read);
    const costs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const before = await cpuUs(program.pid);
      await many(read);
      costs.push(((await cpuUs(program.pid)) - before) / REQUESTS);
    }
    const range = `${Math.min(...costs).toFixed(0)} to ${Math.max(...costs).toFixed(0)}`;
    const name = limit === "0" ? "without rate limits" : "with rate limits";
    console.log(`${name.padEnd(20)} median ${median(costs).toFixed(0)} us of CPU (${range})`);
  } finally {
    agent.destroy();
    await program.stop();
  }
}

async function many(read: () => Promise<void>): Promise<void> {
  let left = REQUESTS;
  const worker = async () => {
    while (left-- > 0) await read();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

function readOnce({ url, headers }: BenchProgram, agent: Agent, path: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = get(`${url}${path}`, { agent, headers }, (answer) => {
    answer.resume();
    answer.on("end", () =>
      answer.statusCode === 200 ? resolve() : reject(new Error(`${answer.statusCode}`)),
    );
  });
  request.on("error", reject);
  return promise;
}

async function cpuUs(pid: number): Promise<number> {
  // Behind the name, which may hold anything: user and system time are the 12th and 13th.
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}
