import { hash } from "node:crypto";
import type { Holder, Store } from "./store.ts";

/** How long a key is believed without being looked up; of one that nobody has, too. */
const BELIEVED_MS = 5_000;
const MOST = 10_000;

/** Whose key it is, remembered for a short while. */
export class Keys {
  readonly #store: Store;
  readonly #known = new Map<string, { holder: Promise<Holder | undefined>; until: number }>();

  constructor(store: Store) {
    this.#store = store;
  }

  find(authorization: string | undefined): Promise<Holder | undefined> | undefined {
    if (!authorization?.startsWith("Bearer ")) return undefined;
    const digest = hash("sha256", authorization.slice(7), "hex");
    const known = this.#known.get(digest);
    const now = performance.now();
    if (known && known.until > now) return known.holder;
    if (this.#known.size >= MOST) this.#known.clear();
    const holder = this.#store.findHolder(Buffer.from(digest, "hex"));
    this.#known.set(digest, { holder, until: now + BELIEVED_MS });
    holder.catch(() => this.#known.delete(digest));
    return holder;
  }
}
