import type { Level } from "./bucket.ts";

/** Whether there was a token, and what is left. */
export interface Verdict extends Level {
  admitted: boolean;
}

/** Buckets of tokens by name; one that was never seen is full. */
export interface Buckets {
  /** Takes a token. Undefined: nobody counts now. */
  take(name: string): Verdict | Promise<Verdict | undefined>;
  start(): Promise<void>;
  close(): void;
}
