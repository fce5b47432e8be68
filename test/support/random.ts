/** Random choices, the same ones for the same seed. */
export interface Random {
  /** From 0 to below 1. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  between(min: number, max: number): number;
  chance(probability: number): boolean;
  /** @throws Error where there is nothing to choose from */
  pick<T>(items: readonly T[]): T;
  /** One of the keys, each as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
  /** Another sequence, told apart by its label: drawing from one leaves the other alone. */
  fork(label: string): Random;
}

export function randomFrom(seed: number | string): Random {
  const next = mulberry32(hash(String(seed)));
  const random: Random = {
    next,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new Error("nothing to choose from");
      return item;
    },
    weighted: (weights) => pickWeighted(weights, next()),
    fork: (label) => randomFrom(`${seed}/${label}`),
  };
  return random;
}

function pickWeighted<K extends string>(weights: Readonly<Record<K, number>>, at: number): K {
  const entries = Object.entries<number>(weights) as [K, number][];
  let rest = at * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [key, weight] of entries) {
    rest -= weight;
    if (rest < 0) return key;
  }
  throw new Error("nothing to choose from");
}

// FNV-1a, so that seeds that look alike lead apart.
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value;
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
