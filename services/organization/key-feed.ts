import { EventEmitter, once } from "node:events";
import { ServiceError } from "../../runtime/errors.ts";
import type { KeyChange } from "./domain/key.ts";

/** What a watcher is told. */
export type KeyNews =
  | { kind: "changed"; change: KeyChange }
  /** Everything that was committed so long ago, or longer, has been told, or was before the watch. */
  | { kind: "current"; ageMs: number };

/**
 * What one connection hears, for any number of watchers. Each reads from the one memory, so that a slow one costs
 * nothing; one that is too far behind is ended.
 */
export class KeyFeed {
  readonly #memory: number;
  readonly #news = new EventEmitter().setMaxListeners(0);
  readonly #recent: KeyChange[] = [];
  #told = 0;
  #provenAt: number | undefined;
  #over = false;

  /** @param memory how many changes a watcher may be behind */
  constructor(memory = 10_000) {
    this.#memory = memory;
  }

  get over(): boolean {
    return this.#over;
  }

  readonly changed = (change: KeyChange): void => {
    this.#told += 1;
    this.#recent.push(change);
    // Trimmed in strides, for a shift a change would move the whole memory each time.
    if (this.#recent.length >= this.#memory * 2)
      this.#recent.splice(0, this.#recent.length - this.#memory);
    this.#news.emit("news");
  };

  /** @param at as performance.now has it */
  readonly proven = (at: number): void => {
    this.#provenAt = at;
    this.#news.emit("news");
  };

  /** Ends every watch. */
  readonly end = (): void => {
    this.#over = true;
    this.#news.emit("news");
  };

  /**
   * From now on, once it is known how current that is.
   * @throws ServiceError (SERVICE_UNAVAILABLE) when the connection is lost, or the watcher is too far behind
   */
  async *watch(signal: AbortSignal): AsyncGenerator<KeyNews> {
    const beganAt = performance.now();
    let seen = this.#told;
    let current: number | undefined;
    while (!signal.aborted) {
      if (this.#over) throw unavailable("what changes about keys is not heard at the moment");
      const provenAt = this.#provenAt;
      if (seen < this.#told && current !== undefined) {
        yield { kind: "changed", change: this.#after(seen) };
        seen += 1;
      } else if (provenAt !== current && provenAt !== undefined) {
        // The first one comes before what was heard since the watch began, and does not speak of it.
        current = seen < this.#told ? Math.min(beganAt, provenAt) : provenAt;
        yield { kind: "current", ageMs: Math.ceil(performance.now() - current) };
      } else if (!(await this.#more(signal))) return;
    }
  }

  #after(seen: number): KeyChange {
    const change = this.#recent[seen - (this.#told - this.#recent.length)];
    if (!change) throw unavailable("too many changes were not read: watch anew");
    return change;
  }

  #more(signal: AbortSignal): Promise<boolean> {
    return once(this.#news, "news", { signal }).then(
      () => true,
      () => false,
    );
  }
}

function unavailable(message: string): ServiceError {
  return new ServiceError("SERVICE_UNAVAILABLE", message);
}
