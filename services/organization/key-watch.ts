import { KeyFeed, type KeyNews } from "./key-feed.ts";
import type { KeyEars, listenForKeys } from "./store/listen.ts";

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** Opens a connection that listens. @returns what ends it */
export type Listen = (ears: KeyEars) => ReturnType<typeof listenForKeys>;

/** What changes about keys, from the one connection of this process that listens. */
export interface KeyWatch {
  /**
   * From now on; the first one is `current`. The first watch of all opens the connection and waits for it.
   * @throws ServiceError (SERVICE_UNAVAILABLE) when the connection is lost, or cannot be had
   */
  watch(signal: AbortSignal): AsyncGenerator<KeyNews>;
  /** Ends every watch, and the connection. */
  stop(): Promise<void>;
}

/** @param onError is told when the connection is lost; it is taken up again after pauses that grow */
export function createKeyWatch(listen: Listen, onError: (error: unknown) => void): KeyWatch {
  let feed: KeyFeed | undefined;
  let close: (() => Promise<void>) | undefined;
  let retry: NodeJS.Timeout | undefined;
  let stopped = false;
  let pauseMs = FIRST_PAUSE_MS;

  const open = (): KeyFeed => {
    const next = new KeyFeed();
    feed = next;
    close = listen({
      changed: next.changed,
      proven: (at) => {
        pauseMs = FIRST_PAUSE_MS;
        next.proven(at);
      },
      lost: (error) => {
        next.end();
        onError(error);
        if (!stopped) retry = setTimeout(open, pauseMs);
        pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
      },
    });
    return next;
  };

  return {
    watch: (signal) => (feed ?? open()).watch(signal),
    stop: async () => {
      stopped = true;
      clearTimeout(retry);
      feed ??= new KeyFeed();
      feed.end();
      await close?.();
    },
  };
}
