interface Waiting<T, V> {
  item: T;
  resolve(value: V): void;
  reject(error: unknown): void;
}

interface Group<T, V> {
  waiting: Waiting<T, V>[];
  /** Questions that hold the next one back. */
  underWay: number;
  /** A question is about to be asked. */
  isDue: boolean;
}

export interface TogetherOptions<T, V> {
  /** Answers for all of them, in their order. */
  ask: (items: readonly T[]) => Promise<readonly V[]>;
  /** Most items of one question. */
  most: number;
  /** How long a question may hold back those who came meanwhile, in milliseconds. */
  patienceMs?: number;
}

/**
 * Asks once for what several of a group want at the same moment; who comes while a question is under way is asked for with the
 * next one. Nothing is remembered: a question begins after all whom it is asked for have come, so that its answer is as fresh as
 * their own would be.
 */
export class Together<T, V> {
  readonly #options: Required<TogetherOptions<T, V>>;
  readonly #groups = new Map<string, Group<T, V>>();

  constructor(options: TogetherOptions<T, V>) {
    this.#options = { patienceMs: 20, ...options };
  }

  ask(groupName: string, item: T): Promise<V> {
    const group = this.#groups.get(groupName) ?? { waiting: [], underWay: 0, isDue: false };
    this.#groups.set(groupName, group);
    return new Promise((resolve, reject) => {
      group.waiting.push({ item, resolve, reject });
      this.#askSoon(groupName, group);
    });
  }

  #askSoon(name: string, group: Group<T, V>): void {
    if (group.isDue || group.underWay > 0) return;
    if (group.waiting.length === 0) {
      this.#groups.delete(name);
      return;
    }
    group.isDue = true;
    // Behind all that this turn of the event loop reads from sockets.
    setImmediate(() => {
      group.isDue = false;
      void this.#ask(name, group);
    });
  }

  async #ask(name: string, group: Group<T, V>): Promise<void> {
    const asked = group.waiting.splice(0, this.#options.most);
    let holdsBack = true;
    const letGo = () => {
      if (!holdsBack) return;
      holdsBack = false;
      group.underWay -= 1;
      this.#askSoon(name, group);
    };
    group.underWay += 1;
    const impatient = setTimeout(letGo, this.#options.patienceMs);
    try {
      const values = await this.#options.ask(asked.map(({ item }) => item));
      asked.forEach(({ resolve }, i) => void resolve(values[i] as V));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    } finally {
      clearTimeout(impatient);
      letGo();
    }
  }
}
