import type { Capacity, Engine } from "./engines/engine.ts";

const AGAIN_MS = 30_000;

/**
 * What an engine's host holds, as last heard; undefined before it ever answered. Asking it begins a
 * new question now and then but never waits for the answer: an engine that hangs holds up nobody.
 */
export function knownCapacity(engine: Engine): () => Capacity | undefined {
  let known: Capacity | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  const ask = () => {
    askedAt = performance.now();
    engine.capacity().then(
      (capacity) => {
        known = capacity;
      },
      // It does not answer: what was heard before still stands, and the next call asks again.
      () => {
        askedAt = Number.NEGATIVE_INFINITY;
      },
    );
  };
  return () => {
    if (performance.now() - askedAt > AGAIN_MS) ask();
    return known;
  };
}
