export interface TurnsOptions {
  /** How many may go on at once. */
  atOnce: number;
  /** Of these, how many of one owner. */
  atOnceOfOne: number;
  /** How many may wait; one owner has half of it at most. */
  waiting: number;
  /** How long one may wait, in milliseconds. */
  patienceMs: number;
  /** What is thrown to whoever finds no place to wait, or has waited too long. */
  refuse: (why: "full" | "late") => Error;
}

export interface Taker {
  /** Whose it is, such as an organization's id; undefined: nobody's, which has no share of its own. */
  owner: string | undefined;
  /** Ends the waiting; its reason is thrown. */
  signal: AbortSignal | undefined;
}

/**
 * A bounded number of things at once, and a bounded number that wait. Owners take turns, each with its oldest first, and
 * none has all of it: whoever holds his share for long holds up himself alone.
 */
export class Turns {
  readonly #options: TurnsOptions;
  #held = 0;
  #waiting = 0;
  #refused = 0;
  readonly #heldOf = new Map<string, number>();
  /** By owner, nobody's under the empty name; whose turn is next is first. */
  readonly #queues = new Map<string, Set<() => void>>();

  constructor(options: TurnsOptions) {
    this.#options = options;
  }

  /** How many go on, wait, and were refused since the start. */
  get numbers(): { held: number; waiting: number; refused: number } {
    return { held: this.#held, waiting: this.#waiting, refused: this.#refused };
  }

  /**
   * Waits for a turn.
   * @returns what ends it, to be called once
   * @throws what `refuse` gives, or the signal's reason
   */
  async take({ owner = "", signal }: Taker): Promise<() => void> {
    signal?.throwIfAborted();
    if (!this.#mayHold(owner)) await this.#wait(owner, signal);
    else this.#hold(owner);
    return () => this.#leave(owner);
  }

  #mayHold(owner: string): boolean {
    const { atOnce, atOnceOfOne } = this.#options;
    if (this.#held >= atOnce) return false;
    return owner === "" || (this.#heldOf.get(owner) ?? 0) < atOnceOfOne;
  }

  #hold(owner: string): void {
    this.#held += 1;
    if (owner !== "") this.#heldOf.set(owner, (this.#heldOf.get(owner) ?? 0) + 1);
  }

  #leave(owner: string): void {
    this.#held -= 1;
    const left = (this.#heldOf.get(owner) ?? 1) - 1;
    if (left > 0) this.#heldOf.set(owner, left);
    else this.#heldOf.delete(owner);
    this.#admitNext();
  }

  // Its owner goes to the end of the line.
  #admitNext(): void {
    for (const [owner, queue] of this.#queues) {
      if (!this.#mayHold(owner)) continue;
      const [admit] = queue;
      this.#queues.delete(owner);
      if (queue.size > 1) this.#queues.set(owner, queue);
      this.#hold(owner);
      admit?.();
      return;
    }
  }

  #wait(owner: string, signal: AbortSignal | undefined): Promise<void> {
    const { waiting, patienceMs } = this.#options;
    const queue = this.#queues.get(owner) ?? new Set();
    const share = owner === "" ? waiting : Math.ceil(waiting / 2);
    if (this.#waiting >= waiting || queue.size >= share) return this.#refuse("full");
    return new Promise((resolve, reject) => {
      const leave = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
        queue.delete(admit);
        if (queue.size === 0 && this.#queues.get(owner) === queue) this.#queues.delete(owner);
        this.#waiting -= 1;
      };
      const admit = () => {
        leave();
        resolve();
      };
      const onAbort = () => {
        leave();
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        leave();
        this.#refuse("late").catch(reject);
      }, patienceMs);
      signal?.addEventListener("abort", onAbort, { once: true });
      this.#queues.set(owner, queue.add(admit));
      this.#waiting += 1;
    });
  }

  async #refuse(why: "full" | "late"): Promise<never> {
    this.#refused += 1;
    throw this.#options.refuse(why);
  }
}
