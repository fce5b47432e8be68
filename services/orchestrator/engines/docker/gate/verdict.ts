/** What costs something to find out, is found out once at a time, and holds until the next look. */
export class Verdict<T> {
  readonly #judge: () => Promise<T>;
  #last: T | undefined;
  #looking: Promise<T> | undefined;

  constructor(judge: () => Promise<T>) {
    this.#judge = judge;
  }

  /** Undefined: nobody has looked yet. */
  get last(): T | undefined {
    return this.#last;
  }

  look(): Promise<T> {
    this.#looking ??= this.#judge()
      .then((verdict) => {
        this.#last = verdict;
        return verdict;
      })
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }
}
