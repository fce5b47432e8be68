import { forAll } from "../../runtime/current-call.ts";

/**
 * A look that many want at once. Those who ask while one is under way share the next: what anybody is told was looked up
 * after he had asked.
 */
export function shareLook<T>(look: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    const begun = forAll(look).finally(() => {
      if (underWay === begun) underWay = undefined;
    });
    underWay = begun;
    return begun;
  };
  const afterThat = async (before: Promise<T>): Promise<T> => {
    await before.catch(() => undefined);
    next = undefined;
    return begin();
  };
  return () => {
    if (!underWay) return begin();
    next ??= afterThat(underWay);
    return next;
  };
}

/** The same for many things, which their names tell apart. */
export function shareLooks<Names extends readonly string[], T>(
  look: (...names: Names) => Promise<T>,
): (...names: Names) => Promise<T> {
  const looks = new Map<string, { ask: () => Promise<T>; users: number }>();
  return async (...names) => {
    const key = JSON.stringify(names);
    const shared = looks.get(key) ?? { ask: shareLook(() => look(...names)), users: 0 };
    looks.set(key, shared);
    shared.users += 1;
    try {
      return await shared.ask();
    } finally {
      shared.users -= 1;
      if (shared.users === 0) looks.delete(key);
    }
  };
}
