interface Waiting<K, V> {
  key: K;
  resolve(value: V | undefined): void;
  reject(error: unknown): void;
}

export interface TogetherOptions<K extends string, V> {
  /** Finds what there is of these keys of one group. */
  find: (group: string, keys: readonly K[]) => Promise<ReadonlyMap<K, V>>;
  /** Most questions of one group that are under way at once; who comes meanwhile is asked for with the next. */
  atOnce?: number;
  /** Most keys of one question. */
  keysMax?: number;
}

/**
 * Asks once for what several of a group want at the same moment. Nothing is remembered: a key is looked up after it was asked
 * for, so an answer is as fresh as if it had been asked for alone.
 */
export class Together<K extends string, V> {
  readonly #options: Required<TogetherOptions<K, V>>;
  readonly #groups = new Map<string, Group<K, V>>();

  constructor(options: TogetherOptions<K, V>) {
    this.#options = { atOnce: 2, keysMax: 100, ...options };
  }

  find(group: string, key: K): Promise<V | undefined> {
    const there = this.#groups.get(group) ?? { waiting: [], underWay: 0, isDue: false };
    this.#groups.set(group, there);
    return new Promise((resolve, reject) => {
      there.waiting.push({ key, resolve, reject });
      this.#askSoon(group, there);
    });
  }

  #askSoon(name: string, group: Group<K, V>): void {
    if (group.isDue || group.underWay >= this.#options.atOnce) return;
    if (group.waiting.length === 0) {
      if (group.underWay === 0) this.#groups.delete(name);
      return;
    }
    group.isDue = true;
    // Behind all that this turn of the event loop reads from sockets.
    setImmediate(() => {
      group.isDue = false;
      void this.#ask(name, group);
      this.#askSoon(name, group);
    });
  }

  async #ask(name: string, group: Group<K, V>): Promise<void> {
    const asked = group.waiting.splice(0, this.#options.keysMax);
    group.underWay += 1;
    try {
      const keys = [...new Set(asked.map(({ key }) => key))];
      const found = await this.#options.find(name, keys);
      for (const { key, resolve } of asked) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      group.underWay -= 1;
      this.#askSoon(name, group);
    }
  }
}

interface Group<K, V> {
  waiting: Waiting<K, V>[];
  underWay: number;
  /** A question is about to be asked. */
  isDue: boolean;
}
