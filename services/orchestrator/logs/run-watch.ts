import { type Coalesced, coalesce } from "../coalesce.ts";
import type { RunKey } from "../engines/engine.ts";
import type { RunState } from "../store/logs.ts";

const EVERY_MS = 500;
const AFTER_HINT_MS = 20;

interface Watched {
  run: RunKey;
  state: RunState | undefined;
  rings: Set<() => void>;
}

/** One run, watched. */
export interface WatchedRun {
  /** As last seen; undefined before the first look. */
  readonly state: RunState | undefined;
  close(): void;
}

/**
 * The rows of the runs that somebody waits for: a query or two a second for all of them, and one soon after each hint. While
 * nobody waits there is no query.
 */
export class RunWatch {
  readonly #list: (runs: readonly RunKey[]) => Promise<RunState[]>;
  readonly #watched = new Map<string, Watched>();
  readonly #looking: Coalesced;
  #timer: NodeJS.Timeout | undefined;
  #hinted: NodeJS.Timeout | undefined;
  #stopped = false;

  /** @param onError gets what a look throws; the next one is not far */
  constructor(
    list: (runs: readonly RunKey[]) => Promise<RunState[]>,
    onError: (error: unknown) => void,
  ) {
    this.#list = list;
    this.#looking = coalesce(() => this.#look(), onError);
  }

  /** @param ring called whenever the run's row has changed, and after the first look */
  watch(run: RunKey, ring: () => void): WatchedRun {
    const key = keyOf(run);
    const watched = this.#watched.get(key) ?? { run, state: undefined, rings: new Set() };
    this.#watched.set(key, watched.rings.add(ring) && watched);
    if (!this.#stopped) this.#timer ??= setInterval(this.#looking.call, EVERY_MS);
    this.hint();
    return {
      get state() {
        return watched.state;
      },
      close: () => {
        watched.rings.delete(ring);
        if (watched.rings.size === 0 && this.#watched.get(key) === watched)
          this.#watched.delete(key);
        if (this.#watched.size === 0) this.#rest();
      },
    };
  }

  /** Some run may have changed; many hints become one look. */
  hint(): void {
    if (this.#watched.size === 0 || this.#stopped) return;
    this.#hinted ??= setTimeout(() => {
      this.#hinted = undefined;
      this.#looking.call();
    }, AFTER_HINT_MS);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#rest();
    await this.#looking.stop();
  }

  #rest(): void {
    clearInterval(this.#timer);
    clearTimeout(this.#hinted);
    this.#timer = undefined;
    this.#hinted = undefined;
  }

  async #look(): Promise<void> {
    const runs = [...this.#watched.values()].map(({ run }) => run);
    if (runs.length === 0) return;
    for (const state of await this.#list(runs)) this.#seen(state);
  }

  #seen(state: RunState): void {
    const watched = this.#watched.get(keyOf(state));
    if (!watched || isSame(watched.state, state)) return;
    watched.state = state;
    for (const ring of watched.rings) ring();
  }
}

/** Whether two looks saw the same. */
export function isSame(a: RunState | undefined, b: RunState): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function keyOf({ sandboxId, generation }: RunKey): string {
  return `${sandboxId}.${generation}`;
}
