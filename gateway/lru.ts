interface Entry<V> {
  value: V;
  weight: number;
}

/** A map of bounded size: what was not asked for the longest makes room. */
export class Lru<K, V> {
  readonly #entries = new Map<K, Entry<V>>();
  readonly #room: number;
  readonly #evicted: (value: V) => void;
  #used = 0;

  /**
   * @param room most that all values may weigh together
   * @param evicted told of every value that makes room
   */
  constructor(room: number, evicted: (value: V) => void = () => undefined) {
    this.#room = room;
    this.#evicted = evicted;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  /** Keeps nothing that weighs more than there is room for. */
  set(key: K, value: V, weight = 1): void {
    this.delete(key);
    if (weight > this.#room) return;
    while (this.#used + weight > this.#room) this.#makeRoom();
    this.#entries.set(key, { value, weight });
    this.#used += weight;
  }

  delete(key: K): void {
    this.#used -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
    this.#used = 0;
  }

  *values(): Iterable<V> {
    for (const { value } of this.#entries.values()) yield value;
  }

  #makeRoom(): void {
    const [oldest] = this.#entries;
    if (!oldest) return;
    const [key, { value }] = oldest;
    this.delete(key);
    this.#evicted(value);
  }
}
