/**
 * Coalesces calls: `send` runs once a few milliseconds after the first of them. A hint that fails
 * is only late work, so its error goes to `onError` and nowhere else.
 */
export function createHint(
  send: () => Promise<void>,
  onError: (error: unknown) => void,
  delayMs = 2,
): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      send().catch(onError);
    }, delayMs).unref();
  };
}
