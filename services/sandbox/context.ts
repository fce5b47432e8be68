import type { Changes } from "./changes.ts";
import type { Store } from "./store.ts";

/** What the verbs of this service work with. */
export interface SandboxContext {
  store: Store;
  changes: Pick<Changes, "publish" | "watch">;
  /** Tells orchestrators, soon and at most once for many calls, that there is work. */
  hint: () => void;
  /** Encrypts what must not be stored readable; `context` binds it to its place. */
  seal: (plaintext: Uint8Array, context: string) => Uint8Array;
  /** Authenticates page cursors. */
  sign: (data: string) => Uint8Array;
  /** Keyed hash of what a request is, kept with its idempotency key. */
  hashRequest: (sha256: Uint8Array) => Uint8Array;
  /** How long an ended ephemeral sandbox stays visible. */
  lingerSecs: number;
}
