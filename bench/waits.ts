// What a held `wait_for=running` costs the program, beside an idle keep-alive connection.
// npm run bench:waits [-- how many]
import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { proportionalKib } from "./support/measure.ts";
import { startBenchProgram } from "./support/program.ts";

const COUNT = Number(process.argv[2] ?? 5_000);
const AT_ONCE = 100;
const REST_MS = 5_000;

// One sandbox takes the whole host, so every later start of that size waits for room.
const program = await startBenchProgram({ ENGINE: "simulated", CPU_OVERCOMMIT: "1" });
const HOST_VCPUS = 1_024;
const body = {
  image: { type: "oci", reference: "alpine" },
  resources: { vcpus: HOST_VCPUS, memory_mib: 64 },
};
const idling: Socket[] = [];

async function rest(): Promise<number> {
  await sleep(REST_MS);
  return proportionalKib(program.pid);
}

async function inTurns(work: () => Promise<void>): Promise<void> {
  for (let begun = 0; begun < COUNT; begun += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** A connection that has served one request and stays open. */
async function idle(): Promise<void> {
  const socket = connect(Number(new URL(program.url).port), "127.0.0.1");
  idling.push(socket);
  socket.write("GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n");
  await once(socket, "data");
}

/** A start whose answer is held; it is on its way when this returns. */
async function held(): Promise<void> {
  const path = "/v1/sandboxes?start=true&wait_for=running&wait_timeout=300";
  const { headers } = program;
  const post = request(`${program.url}${path}`, { method: "POST", headers, agent: false });
  post.on("error", () => undefined);
  post.end(JSON.stringify(body));
  await once(post, "finish");
}

const settled = await program.post("/v1/sandboxes?start=true&wait_for=running", body);
if (settled.status !== "running") throw new Error("the first start does not run");
const before = await rest();
await inTurns(idle);
const withIdle = await rest();
for (const socket of idling) socket.destroy();
const between = await rest();
await inTurns(held);
await sleep(REST_MS);
const withHeld = await rest();

const each = (from: number, to: number) => `${((to - from) / COUNT).toFixed(1)} KiB each`;
console.log(`${COUNT} connections, the program's process, ENGINE=simulated`);
console.log(`at rest                      ${(before / 1024).toFixed(0)} MiB`);
console.log(`idle connections             ${each(before, withIdle)}`);
console.log(`at rest again                ${(between / 1024).toFixed(0)} MiB`);
console.log(`held waits                   ${each(between, withHeld)}`);
console.log(`with all waits held          ${(withHeld / 1024).toFixed(0)} MiB`);
await program.stop();
process.exit();
