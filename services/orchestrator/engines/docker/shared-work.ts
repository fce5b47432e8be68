interface UnderWay<T> {
  result: Promise<T>;
  wanted: number;
  stop: AbortController;
}

/** Work that several want at once is done once, and aborted when none of them wants it any more. */
export class SharedWork<T> {
  readonly #underWay = new Map<string, UnderWay<T>>();

  /** @throws what the work throws, or the signal's reason */
  async do(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    signal.throwIfAborted();
    const shared = this.#underWay.get(key) ?? this.#begin(key, work);
    shared.wanted += 1;
    const { promise: gaveUp, reject } = Promise.withResolvers<never>();
    const giveUp = () => reject(signal.reason);
    signal.addEventListener("abort", giveUp, { once: true });
    try {
      return await Promise.race([shared.result, gaveUp]);
    } finally {
      signal.removeEventListener("abort", giveUp);
      shared.wanted -= 1;
      if (shared.wanted === 0) this.#end(key, shared);
    }
  }

  #begin(key: string, work: (signal: AbortSignal) => Promise<T>): UnderWay<T> {
    const stop = new AbortController();
    const shared = { result: work(stop.signal), wanted: 0, stop };
    // Whoever waits for it sees the failure; when nobody does any more it is nobody's.
    shared.result.catch(() => undefined);
    this.#underWay.set(key, shared);
    return shared;
  }

  #end(key: string, shared: UnderWay<T>): void {
    shared.stop.abort();
    if (this.#underWay.get(key) === shared) this.#underWay.delete(key);
  }
}

/** Lets those with the same key in one at a time, in the order in which they came. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = (async () => {
      await before?.catch(() => undefined);
      return await work();
    })();
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
