import { LRUCache } from "lru-cache";
import { levelOf, type Rate, withoutToken } from "./bucket.ts";
import type { Buckets, Verdict } from "./buckets.ts";

// Of those not used for the longest hardly any is not full.
const PLACES = 100_000;

/** Buckets of this process alone. */
export class MemoryBuckets implements Buckets {
  readonly #rate: Rate;
  /** When each is full, by `performance.now()`. */
  readonly #fullAt: LRUCache<string, number>;

  constructor(rate: Rate, places = PLACES) {
    this.#rate = rate;
    // By weight, since room for a number of entries would be taken at once.
    this.#fullAt = new LRUCache({ maxSize: places, sizeCalculation: () => 1 });
  }

  take(name: string): Verdict {
    const now = performance.now();
    const fullAt = this.#fullAt.get(name) ?? now;
    const before = levelOf(fullAt, now, this.#rate);
    if (before.remaining < 1) return { ...before, admitted: false };
    const after = withoutToken(fullAt, now, this.#rate);
    this.#fullAt.set(name, after);
    return { ...levelOf(after, now, this.#rate), admitted: true };
  }

  async start(): Promise<void> {}

  close(): void {}
}
