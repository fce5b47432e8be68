import type { LogChunk, LogPosition } from "../engines/engine.ts";
import type { Feed } from "./feed.ts";

/** A reading for one follower alone; it holds one chunk at most, and asks for the next when that was taken. */
export class SeparateReading {
  readonly #cut = new AbortController();
  readonly #chunks: Promise<AsyncIterator<LogChunk>>;
  readonly #ring: () => void;
  #slot: LogChunk | "ended" | undefined;
  #failure: { error: unknown } | undefined;
  #asked = false;

  constructor(feed: Feed, after: LogPosition, ring: () => void) {
    this.#ring = ring;
    this.#chunks = feed
      .readApart({ ...after }, this.#cut.signal)
      .then((chunks) => chunks[Symbol.asyncIterator]());
    this.#chunks.catch(() => undefined);
  }

  /** See FeedReader.take. */
  take(): LogChunk | "ended" | undefined {
    if (this.#failure) throw this.#failure.error;
    const taken = this.#slot;
    if (taken === "ended") return taken;
    if (taken) {
      this.#slot = undefined;
      this.#asked = false;
      return taken;
    }
    this.#ask();
    return undefined;
  }

  close(): void {
    this.#cut.abort();
    // One that has more to give, and is not asked, would not look at the signal.
    this.#chunks.then((chunks) => chunks.return?.()).catch(() => undefined);
  }

  #ask(): void {
    if (this.#asked) return;
    this.#asked = true;
    this.#chunks
      .then((chunks) => chunks.next())
      .then(
        ({ done, value }) => {
          this.#slot = done ? "ended" : value;
          this.#ring();
        },
        (error: unknown) => {
          this.#failure = { error };
          this.#ring();
        },
      );
  }
}
