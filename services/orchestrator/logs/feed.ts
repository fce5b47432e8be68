import type { LogChunk, LoggedRun, LogPosition } from "../engines/engine.ts";
import type { FeedReader } from "./feed-reader.ts";

/** Of the newest output; who is farther behind reads from the engine himself. */
export const WINDOW = { chunks: 1024, characters: 256 * 1024 };

/** The part of an engine that is needed here. */
export interface LogSourceEngine {
  logs(run: LoggedRun, after: LogPosition, signal: AbortSignal): Promise<AsyncIterable<LogChunk>>;
}

/**
 * One reading of a run's output for all who follow it. The next chunk is asked for only when somebody waits for it,
 * so the slowest part of the world sets no pace and the fastest reader does; what all have seen is forgotten.
 */
export class Feed {
  readonly run: LoggedRun;
  readonly #engine: LogSourceEngine;
  readonly #cut = new AbortController();
  readonly #opened: Promise<AsyncIterator<LogChunk>>;
  /** Those who read from here, and of them those who have read everything. */
  readonly #attached = new Set<FeedReader>();
  readonly #waiting = new Set<FeedReader>();
  readonly #window: LogChunk[] = [];
  /** Number of the window's first chunk, and what was read before it. */
  #first = 0;
  readonly #base: LogPosition;
  #characters = 0;
  #pulling = false;
  #end: { error: unknown } | "ended" | undefined;

  /** Begins to open at once, behind the position. */
  constructor(engine: LogSourceEngine, run: LoggedRun, after: LogPosition) {
    this.run = run;
    this.#engine = engine;
    this.#base = { ...after };
    this.#opened = engine
      .logs(run, after, this.#cut.signal)
      .then((chunks) => chunks[Symbol.asyncIterator]());
    // Whoever waits for it is told.
    this.#opened.catch(() => undefined);
  }

  /** @throws EngineUnavailable */
  async opened(): Promise<void> {
    await this.#opened;
  }

  get failed(): boolean {
    return typeof this.#end === "object";
  }

  get first(): number {
    return this.#first;
  }

  /** How many chunks are held, for whoever watches over memory. */
  get held(): number {
    return this.#window.length;
  }

  /** A reading of somebody's own. */
  readApart(after: LogPosition, signal: AbortSignal): Promise<AsyncIterable<LogChunk>> {
    return this.#engine.logs(this.run, after, AbortSignal.any([signal, this.#cut.signal]));
  }

  /** Lets somebody read on from here, where nothing that he has not seen is forgotten; false: he is behind. */
  attach(reader: FeedReader, { stdout, stderr }: LogPosition): boolean {
    if (stdout < this.#base.stdout || stderr < this.#base.stderr) return false;
    this.#attached.add(reader);
    return true;
  }

  detach(reader: FeedReader): void {
    this.#attached.delete(reader);
    this.#waiting.delete(reader);
  }

  /**
   * Chunk number `at`. Undefined: the reader's bell rings when there is more.
   * @throws what the engine throws
   */
  take(at: number, reader: FeedReader): LogChunk | "ended" | undefined {
    const chunk = this.#window[at - this.#first];
    if (chunk) return chunk;
    if (this.#end === "ended") return "ended";
    if (this.#end) throw this.#end.error;
    this.#waiting.add(reader);
    if (this.#waiting.size === this.#attached.size) this.#forget(this.#window.length);
    this.#pull();
    return undefined;
  }

  /** Ends the reading, and those that were begun apart. */
  close(): void {
    this.#cut.abort();
    // One that has more to give, and is not asked, would not look at the signal.
    this.#opened.then((chunks) => chunks.return?.()).catch(() => undefined);
  }

  #pull(): void {
    if (this.#pulling) return;
    this.#pulling = true;
    this.#opened
      .then((chunks) => chunks.next())
      .then(
        ({ done, value }) => (done ? this.#finish("ended") : this.#add(value)),
        (error: unknown) => this.#finish({ error }),
      );
  }

  #add(chunk: LogChunk): void {
    this.#pulling = false;
    this.#window.push(chunk);
    this.#characters += chunk.text.length;
    while (this.#window.length > WINDOW.chunks || this.#characters > WINDOW.characters) {
      if (this.#window.length === 1) break;
      this.#forget(1);
    }
    this.#wake();
  }

  #finish(end: { error: unknown } | "ended"): void {
    this.#end = end;
    this.#wake();
  }

  #forget(count: number): void {
    for (const { stream, offset, text } of this.#window.splice(0, count)) {
      this.#base[stream] = offset;
      this.#characters -= text.length;
    }
    this.#first += count;
  }

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const reader of waiting) reader.ring();
  }
}
