import type { Store } from "./store.ts";

/** What the verbs of this service work with. */
export interface BillingContext {
  store: Store;
}

/** What the background work needs beside it. */
export interface CapContext extends BillingContext {
  /** Asks for a stop on behalf of the organization; one that is stopped or gone meanwhile is no error. */
  stopSandbox: (sandbox: { orgId: string; sandboxId: string }) => Promise<void>;
  /** From a pool's end to the stop of what still runs. */
  poolGraceMs: number;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}
