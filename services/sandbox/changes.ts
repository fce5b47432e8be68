import { randomUUID } from "node:crypto";
import { EventEmitter, once } from "node:events";
import type { Change } from "./domain/sandbox.ts";

/** A change and the cursor behind it; `change` undefined: anything may have changed. */
export interface Watched {
  cursor: string;
  change: Change | undefined;
}

/** What changes, with a short memory for watchers that come back. */
export interface Changes {
  publish(change: Change): void;
  /** Anything may have changed. */
  reset(): void;
  /** From behind `cursor` on, or from now on where it is empty; ends with the signal. */
  watch(cursor: string, signal: AbortSignal): AsyncGenerator<Watched>;
}

/** @param memory how many changes a watcher may have missed and still resume */
export function createChanges(memory = 10_000): Changes {
  // A cursor of another process, or of this one's former life, cannot be resumed.
  const epoch = randomUUID();
  const emitter = new EventEmitter().setMaxListeners(0);
  const recent: Watched["change"][] = [];
  let sequence = 0;

  const cursorAt = (at: number) => `${epoch}.${at}`;
  const missedSince = (cursor: string): Watched[] => {
    const [of, at] = cursor.split(".");
    const seen = Number(at);
    const first = sequence - recent.length;
    if (of !== epoch || !(seen >= first && seen <= sequence))
      return [{ cursor: cursorAt(sequence), change: undefined }];
    return recent
      .slice(seen - first)
      .map((change, i) => ({ cursor: cursorAt(seen + i + 1), change }));
  };

  const published = (signal: AbortSignal) =>
    once(emitter, "change", { signal }).then(
      () => true,
      () => false,
    );

  const add = (change: Watched["change"]) => {
    sequence += 1;
    recent.push(change);
    // Trimmed in strides, for a shift an event would move the whole memory each time.
    if (recent.length >= memory * 2) recent.splice(0, recent.length - memory);
    emitter.emit("change");
  };

  return {
    publish: add,
    reset: () => add(undefined),
    async *watch(cursor, signal) {
      // Every watcher reads from the one memory, so a slow one costs nothing but a reset.
      let seen = cursor;
      while (!signal.aborted) {
        for (const watched of missedSince(seen)) {
          seen = watched.cursor;
          yield watched;
        }
        if (seen === cursorAt(sequence) && !(await published(signal))) return;
      }
    },
  };
}
