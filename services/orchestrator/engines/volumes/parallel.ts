/**
 * Does it for each, so many at once; answers in their order. Waits for all that it began before it throws the first
 * failure: what they work with may be closed then.
 */
export async function inParallel<T, R>(
  items: readonly T[],
  width: number,
  act: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const work = async () => {
    while (next < items.length) {
      const i = next++;
      results[i] = await act(items[i] as T);
    }
  };
  const ends = await Promise.allSettled(
    Array.from({ length: Math.min(width, items.length) }, work),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return results;
}

/** So many at once, the others wait for their turn. */
export function createSlots(count: number): <T>(act: () => Promise<T>) => Promise<T> {
  let free = count;
  const waiting: (() => void)[] = [];
  return async (act) => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await act();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}
