import type { Client, ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { METRICS } from "../../runtime/metrics/catalogue.ts";
import type { Metrics } from "../../runtime/metrics/metrics.ts";
import { seldomAsked } from "../../runtime/metrics/seldom-asked.ts";
import { startRounds } from "../../runtime/rounds.ts";
import type { CapContext } from "./context.ts";
import { enforceCaps } from "./domain/enforce-caps.ts";
import { rollUp } from "./domain/roll-up.ts";
import { createBillingService } from "./service.ts";
import { createStopSandbox } from "./stop-sandbox.ts";
import { createStore, type Database } from "./store.ts";

export interface BillingOptions {
  database: Database;
  /** To stop what runs beyond a hard-capped plan. */
  sandboxes: Client<typeof SandboxService>;
  poolGraceSecs: number;
  metrics: Metrics;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/** The billing service, with its metering and its hard caps running. */
export function startBillingService(options: BillingOptions): {
  service: ServiceImpl<typeof BillingService>;
  stop(): Promise<void>;
} {
  const { database, sandboxes, poolGraceSecs, metrics, onError } = options;
  const ctx: CapContext = {
    store: createStore(database),
    stopSandbox: createStopSandbox(sandboxes),
    poolGraceMs: poolGraceSecs * 1_000,
    onError,
  };
  const lag = seldomAsked(ctx.store.meteringLag);
  metrics.gauge(METRICS.meteringLag, async (put) => {
    const secs = await lag();
    if (secs !== undefined) put(secs, {});
  });
  const rounds = [rollUp, enforceCaps].map((round) => startRounds(() => round(ctx), onError));
  return {
    service: createBillingService(ctx),
    stop: async () => {
      await Promise.all(rounds.map((each) => each.stop()));
    },
  };
}
