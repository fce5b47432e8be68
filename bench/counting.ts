// What being watched costs a request: CPU time of counting it, of counting a call, and of a span while tracing is off.
// npm run bench:counting [-- rounds]
import { countRequests } from "../gateway/http/count-requests.ts";
import { Metrics } from "../runtime/metrics/metrics.ts";
import { countServerCalls } from "../runtime/metrics/rpc.ts";
import { inSpan } from "../runtime/tracing/spans.ts";
import { median } from "./support/measure.ts";

const ROUNDS = Number(process.argv[2] ?? 5);
const TIMES = 300_000;

const metrics = new Metrics();
const count = countRequests(metrics);
const finished = { request: { method: "GET" }, route: "/v1/sandboxes/{sandbox_id}", status: 200 };
const method = { name: "GetSandbox", parent: { typeName: "sandbox.v1.SandboxService" } };
const nothing = async () => ({ stream: false });
// As much of a request, and of a call, as is looked at.
const counted = countServerCalls(metrics)(nothing as never);
const work: Record<string, () => Promise<unknown>> = {
  "a request": async () => count({ ...finished, ms: 1.5 } as never),
  "a call": () => counted({ method } as never),
  "a span while tracing is off": () => inSpan("x", { kind: "client" }, nothing),
};

const costs = new Map<string, number[]>(Object.keys(work).map((name) => [name, []]));
await cpuUs(nothing);
for (let round = 0; round < ROUNDS; round += 1)
  for (const [name, does] of Object.entries(work)) {
    const base = await cpuUs(nothing);
    costs.get(name)?.push((await cpuUs(does)) - base);
  }
for (const [name, all] of costs) {
  const range = `${Math.min(...all).toFixed(2)} to ${Math.max(...all).toFixed(2)}`;
  console.log(`${name.padEnd(28)} median ${median(all).toFixed(2)} us of CPU (${range})`);
}

async function cpuUs(does: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < TIMES; i += 1) await does();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / TIMES;
}
