import type { LoggedRun, LogPosition } from "../engines/engine.ts";
import { Feed, type LogSourceEngine } from "./feed.ts";
import { FeedReader } from "./feed-reader.ts";

/** Every run that is followed, each read from the engine once for all its followers. */
export class LogHub {
  readonly #engine: LogSourceEngine;
  readonly #feeds = new Map<string, { feed: Feed; readers: number }>();

  constructor(engine: LogSourceEngine) {
    this.#engine = engine;
  }

  /** Chunks that are held for all followers together. */
  get held(): number {
    return [...this.#feeds.values()].reduce((sum, { feed }) => sum + feed.held, 0);
  }

  /** How many runs are being read. */
  get feeds(): number {
    return this.#feeds.size;
  }

  /**
   * Begins to follow a run behind a position; close what it returns.
   * @throws EngineUnavailable
   */
  async open(run: LoggedRun, after: LogPosition, ring: () => void): Promise<FeedReader> {
    const entry = this.#entry(run, after);
    entry.readers += 1;
    const leave = () => {
      entry.readers -= 1;
      if (entry.readers === 0) this.#drop(run, entry.feed);
    };
    try {
      await entry.feed.opened();
    } catch (error) {
      leave();
      throw error;
    }
    return new FeedReader(entry.feed, after, ring, leave);
  }

  /** Ends every reading. */
  close(): void {
    for (const { feed } of this.#feeds.values()) feed.close();
  }

  #entry(run: LoggedRun, after: LogPosition): { feed: Feed; readers: number } {
    const key = keyOf(run);
    const known = this.#feeds.get(key);
    // Those who follow one that has failed are on their way out.
    if (known && !known.feed.failed) return known;
    const made = { feed: new Feed(this.#engine, run, after), readers: 0 };
    this.#feeds.set(key, made);
    return made;
  }

  #drop(run: LoggedRun, feed: Feed): void {
    feed.close();
    if (this.#feeds.get(keyOf(run))?.feed === feed) this.#feeds.delete(keyOf(run));
  }
}

function keyOf({ sandboxId, generation }: LoggedRun): string {
  return `${sandboxId}.${generation}`;
}
