import { setTimeout as sleep } from "node:timers/promises";
import type { VolumeKey } from "../volume-store.ts";
import type { Layout } from "./layout.ts";
import { cleanStaging } from "./staging.ts";

const PATIENCE_MS = 5_000;

/**
 * Clears away what dead processes left in volumes. A sandbox with a foot in a tree that is removed may go on to write there
 * as fast as it is cleared: nobody waits for that for long, and never twice for the same.
 */
export class Cleaning {
  readonly #layout: Layout;
  readonly #patienceMs: number;
  readonly #underWay = new Set<string>();

  constructor(layout: Layout, patienceMs = PATIENCE_MS) {
    this.#layout = layout;
    this.#patienceMs = patienceMs;
  }

  /** What cannot be removed now is tried again the next time. @param signal ends what goes on, also later */
  async clean(key: VolumeKey, signal: AbortSignal): Promise<void> {
    const id = this.#layout.volume(key);
    if (this.#underWay.has(id)) return;
    this.#underWay.add(id);
    const cleaned = this.#clean(key, signal)
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(id));
    const waited = new AbortController();
    const patience = AbortSignal.any([signal, waited.signal]);
    await Promise.race([
      cleaned,
      sleep(this.#patienceMs, undefined, { signal: patience }).catch(() => undefined),
    ]);
    waited.abort();
  }

  async #clean(key: VolumeKey, signal: AbortSignal): Promise<void> {
    await using volume = await this.#layout.openIfThere(key);
    if (volume) await cleanStaging(volume, signal);
  }
}
