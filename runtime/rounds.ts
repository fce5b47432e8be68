/** How long after a round that failed the next one begins. */
const AFTER_FAILURE_MS = 1_000;

/**
 * Does a round of background work now, and again whenever it has rested, one at a time.
 * @param round returns how many milliseconds to rest after it; one that fails is told and tried again in a second
 * @returns `stop` ends it, and waits for a round that is under way
 */
export function startRounds(
  round: () => Promise<number>,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  const once = async () => {
    const restMs = await round().catch((error: unknown) => {
      onError(error);
      return AFTER_FAILURE_MS;
    });
    if (!stopped) timer = setTimeout(next, restMs);
  };
  let running = once();
  function next() {
    running = once();
  }
  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
