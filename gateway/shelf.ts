/** Keeps values within a bounded weight: what was not asked for while half of it came anew makes room. */
export class Shelf<V> {
  readonly #half: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();
  #weight = 0;

  /** @param weight most of all values together */
  constructor(weight: number) {
    this.#half = weight / 2;
  }

  get(key: string): V | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  has(key: string): boolean {
    return this.#young.has(key);
  }

  put(key: string, value: V, weight: number): void {
    // It would push all others out.
    if (weight > this.#half) return;
    this.#weight += weight;
    if (this.#weight > this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#weight = weight;
    }
    this.#young.set(key, value);
  }
}
