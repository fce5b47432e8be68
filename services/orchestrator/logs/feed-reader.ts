import type { LogChunk, LogPosition } from "../engines/engine.ts";
import type { Feed } from "./feed.ts";
import { SeparateReading } from "./separate-reading.ts";

/**
 * One follower's way through a run's output: with all others where he can, by a reading of his own where he is behind
 * them, until he has caught up.
 */
export class FeedReader {
  /** Behind the last chunk that was taken. */
  readonly position: LogPosition;
  readonly ring: () => void;
  readonly #feed: Feed;
  readonly #onClose: () => void;
  #next = 0;
  #own: SeparateReading | undefined;

  /** @param ring called when it is worth to take again */
  constructor(feed: Feed, after: LogPosition, ring: () => void, onClose: () => void) {
    this.#feed = feed;
    this.#onClose = onClose;
    this.position = { ...after };
    this.ring = ring;
    this.#join();
  }

  /**
   * The next chunk, if it is there; else undefined, and the bell rings when there is more. `ended`: the run's machine
   * is down and everything is read.
   * @throws EngineUnavailable
   */
  take(): LogChunk | "ended" | undefined {
    for (;;) {
      if (!this.#own && this.#next < this.#feed.first) this.#join();
      const taken = this.#own ? this.#own.take() : this.#feed.take(this.#next, this);
      if (taken === undefined || taken === "ended") return taken;
      if (!this.#own) this.#next += 1;
      // Who has just joined may have seen some of it.
      if (taken.offset <= this.position[taken.stream]) continue;
      this.position[taken.stream] = taken.offset;
      if (this.#own) this.#join();
      return taken;
    }
  }

  close(): void {
    this.#own?.close();
    this.#feed.detach(this);
    this.#onClose();
  }

  #join(): void {
    if (this.#feed.attach(this, this.position)) {
      this.#own?.close();
      this.#own = undefined;
      this.#next = this.#feed.first;
    } else {
      this.#feed.detach(this);
      this.#own ??= new SeparateReading(this.#feed, this.position, this.ring);
    }
  }
}
