// The load of `npm run bench`, in a process of its own: takes jobs from the one that forked it, one at a time.
import { percentile } from "../support/measure.ts";
import { openGrpc } from "./grpc.ts";
import { openHttp } from "./http.ts";
import type { Job, Outcome } from "./job.ts";
import { closedLoop, openLoop } from "./loops.ts";

process.on("message", async (job: Job) => {
  process.send?.(await run(job).catch((error: unknown) => ({ error: String(error) })));
});
process.on("disconnect", () => process.exit());

async function run({ target, connections: count, seconds, rate }: Job): Promise<Outcome> {
  const connections = await (target.kind === "http"
    ? openHttp(target, count)
    : openGrpc(target, count));
  const times: number[] = [];
  const lateness: number[] = [];
  const others: Record<string, number> = {};
  const tell = (status: number, ms: number) => {
    if (status === target.status) times.push(ms);
    else others[status] = (others[status] ?? 0) + 1;
  };
  const cpu = process.cpuUsage();
  const began = performance.now();
  if (rate === undefined) await closedLoop(connections, seconds, tell);
  else await openLoop(connections, { seconds, rate }, tell, (ms) => lateness.push(ms));
  const tookMs = performance.now() - began;
  const { user, system } = process.cpuUsage(cpu);
  for (const connection of connections) connection.close();
  const at = (share: number) => percentile(times, share);
  return {
    answers: times.length,
    others,
    tookMs,
    cpuMs: (user + system) / 1_000,
    latency: { p50: at(0.5), p90: at(0.9), p99: at(0.99), most: at(1) },
    lateP99: percentile(lateness, 0.99),
  };
}
