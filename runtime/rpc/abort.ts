import { Code, ConnectError } from "@connectrpc/connect";

/** Why a signal aborted, as clients see it: DeadlineExceeded, or Canceled where the caller hung up. */
export function abortError(signal: AbortSignal): ConnectError {
  return ConnectError.from(signal.reason, Code.Canceled);
}

/** Settles as `work` does, or fails with the abort's error as soon as the signal aborts. */
export function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(abortError(signal));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** Yields what `source` does. When the signal aborts, a waiting reader fails at once and the source is ended. */
export function abortableStream<T>(
  source: AsyncIterable<T>,
  signal: AbortSignal,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => abortableIterator(source[Symbol.asyncIterator](), signal),
  };
}

/** Not a Promise.race a message: the lasting promise in it would keep every message alive. */
function abortableIterator<T>(source: AsyncIterator<T>, signal: AbortSignal): AsyncIterator<T> {
  let failReader = (_error: ConnectError) => {};
  const end = async () => {
    signal.removeEventListener("abort", onAbort);
    await source.return?.();
  };
  const onAbort = () => {
    failReader(abortError(signal));
    // A source that fails while it is ended has nobody left to tell.
    end().catch(() => {});
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();

  const next = () =>
    new Promise<IteratorResult<T>>((resolve, reject) => {
      if (signal.aborted) return reject(abortError(signal));
      failReader = reject;
      source.next().then((result) => {
        if (result.done) signal.removeEventListener("abort", onAbort);
        resolve(result);
      }, reject);
    });
  return { next, return: () => end().then(() => ({ done: true, value: undefined })) };
}
