import type { Client, ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
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
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/** The billing service, with its metering and its hard caps running. */
export function startBillingService(options: BillingOptions): {
  service: ServiceImpl<typeof BillingService>;
  stop(): Promise<void>;
} {
  const { database, sandboxes, poolGraceSecs, onError } = options;
  const ctx: CapContext = {
    store: createStore(database),
    stopSandbox: createStopSandbox(sandboxes),
    poolGraceMs: poolGraceSecs * 1_000,
    onError,
  };
  const rounds = [rollUp, enforceCaps].map((round) => startRounds(() => round(ctx), onError));
  return {
    service: createBillingService(ctx),
    stop: async () => {
      await Promise.all(rounds.map((each) => each.stop()));
    },
  };
}
