import type { Store } from "./store.ts";

/** What the verbs of this service work with. */
export interface BillingContext {
  store: Store;
}
