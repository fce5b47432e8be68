import { Code, ConnectError } from "@connectrpc/connect";
import { isUnprocessed } from "./unprocessed.ts";

/**
 * So many messages are kept: somewhat more of a file than a server's window lets be sent to it before it has begun with the
 * call (listener.ts).
 */
const MOST_KEPT = 20;
/** For so long: a refusal takes one way back. */
const KEPT_MS = 5_000;

/** What a call sends, for one try after the other. */
export interface Replay<T> {
  /**
   * The messages, from the first on.
   * @throws ConnectError (Unavailable) where some that are to be sent again are not kept any more
   */
  attempt(): AsyncIterable<T>;
  /** Whether another attempt would still send all of them. */
  readonly isWhole: boolean;
  /** Keeps nothing any more, for there will be no other attempt. */
  settle(): void;
}

/**
 * Lets a call be made again with messages that can be read but once, while few were taken. A try that was surely never
 * processed does not end the messages; any other does.
 */
export function replay<T>(messages: AsyncIterable<T>): Replay<T> {
  const source = messages[Symbol.asyncIterator]();
  const kept: (Promise<IteratorResult<T>> | undefined)[] = [];
  let isWhole = true;
  /** How many messages the attempt that goes on has taken. */
  let taken = 0;
  let timer: NodeJS.Timeout | undefined;

  const take = (at: number) => {
    taken = at + 1;
    const known = kept[at];
    if (known) {
      if (!isWhole) kept[at] = undefined;
      return known;
    }
    timer ??= setTimeout(settle, KEPT_MS).unref();
    const next = source.next();
    if (isWhole && kept.length < MOST_KEPT) kept.push(next);
    else settle();
    return next;
  };
  const settle = () => {
    clearTimeout(timer);
    isWhole = false;
    // The attempt that goes on still has to send the others, before it goes on with the source.
    kept.fill(undefined, 0, taken);
  };
  const attempt = (): AsyncIterable<T> => {
    if (!isWhole && taken > 0) throw new ConnectError("service unavailable", Code.Unavailable);
    let at = 0;
    taken = 0;
    let spared = false;
    const iterator: AsyncIterator<T> = {
      next: () => take(at++),
      async throw(reason) {
        spared = isWhole && isUnprocessed(reason);
        // The next one begins anew, however long it is until then.
        if (spared) taken = 0;
        else await source.throw?.(reason);
        return { done: true, value: undefined };
      },
      async return() {
        if (!spared) await source.return?.();
        return { done: true, value: undefined };
      },
    };
    return { [Symbol.asyncIterator]: () => iterator };
  };
  return {
    attempt,
    settle,
    get isWhole() {
      return isWhole;
    },
  };
}
