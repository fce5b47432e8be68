import { METRICS } from "../../runtime/metrics/catalogue.ts";
import type { Metrics } from "../../runtime/metrics/metrics.ts";
import { seldomAsked } from "../../runtime/metrics/seldom-asked.ts";
import type { Leading } from "./orchestrator.ts";
import type { Store } from "./store.ts";

type Census = Pick<Store, "countQueue" | "countSandboxes" | "oldestMeasurement">;

const STATES = ["created", "starting", "running", "stopping", "stopped", "failed", "destroyed"];

/** Shows what this orchestrator does. What is the same for all of them the leader alone says, so that sums are true. */
export function exposeOrchestrator(
  metrics: Metrics,
  leading: () => Leading | undefined,
  store: Census,
): void {
  metrics.gauge(METRICS.leading, (put) => put(leading() ? 1 : 0, {}));
  metrics.gauge(METRICS.leaseEpoch, (put) => {
    const led = leading();
    if (led) put(Number(led.epoch), {});
  });
  metrics.gauge(METRICS.observedAt, (put) => {
    const at = leading()?.observedAt;
    if (at) put(at.getTime() / 1_000, {});
  });
  metrics.gauge(METRICS.tasks, (put) => {
    for (const [kind, count] of Object.entries(leading()?.underWay ?? {})) put(count, { kind });
  });
  exposeCensus(metrics, leading, store);
}

function exposeCensus(metrics: Metrics, leading: () => Leading | undefined, store: Census): void {
  const ofLeader = <T>(ask: () => Promise<T>) => {
    const asked = seldomAsked(ask);
    return async () => (leading() ? asked() : undefined);
  };
  const queue = ofLeader(store.countQueue);
  metrics.gauge(METRICS.queueDepth, async (put) => {
    const census = await queue();
    if (!census) return;
    put(census.new, { state: "new" });
    put(census.waiting, { state: "waiting" });
  });
  metrics.gauge(METRICS.queueOldest, async (put) => {
    const census = await queue();
    if (census) put(census.oldest, {});
  });
  const sandboxes = ofLeader(store.countSandboxes);
  metrics.gauge(METRICS.sandboxes, async (put) => {
    const counts = await sandboxes();
    if (!counts) return;
    const byStatus = new Map(counts.map(({ status, count }) => [status, count]));
    for (const state of STATES) put(byStatus.get(state) ?? 0, { state });
  });
  const oldest = ofLeader(store.oldestMeasurement);
  metrics.gauge(METRICS.volumesOldest, async (put) => {
    const secs = await oldest();
    if (secs !== undefined) put(secs, {});
  });
}
