/** A map of bounded size: what was not asked for the longest makes room. */
export class Lru<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #places: number;
  readonly #evicted: (value: V) => void;

  /** @param evicted told of every value that makes room */
  constructor(places: number, evicted: (value: V) => void = () => undefined) {
    this.#places = places;
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    return value;
  }

  set(key: K, value: V): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#places) this.#makeRoom();
    this.#entries.set(key, value);
  }

  delete(key: K): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  values(): Iterable<V> {
    return this.#entries.values();
  }

  #makeRoom(): void {
    const [oldest] = this.#entries;
    if (!oldest) return;
    this.#entries.delete(oldest[0]);
    this.#evicted(oldest[1]);
  }
}
