import type { Sign } from "../../runtime/pages.ts";
import type { KeyWatch } from "./key-watch.ts";
import type { Store } from "./store.ts";

/** What the verbs of this service work with. */
export interface OrganizationContext {
  store: Store;
  /** Authenticates page cursors. */
  sign: Sign;
  /** What changes about keys. */
  keyWatch: KeyWatch;
}
