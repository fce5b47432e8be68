const SILENCE_MS = 300;

/**
 * Yields what a stream does, and calls `onSilence` once after each burst, when nothing more has come for a moment. A
 * stream whose reader is busy elsewhere is not silent; one that stays silent costs nothing.
 */
export async function* noticeSilence(
  source: AsyncIterable<Buffer>,
  onSilence: () => void,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer = setTimeout(onSilence, SILENCE_MS);
      const { done, value } = await chunks.next().finally(() => clearTimeout(timer));
      if (done) return;
      yield value;
    }
  } finally {
    await chunks.return?.();
  }
}
