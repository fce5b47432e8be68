import type { LogChunk, LogSource } from "../engines/engine.ts";
import { Bell } from "../logs/bell.ts";
import type { FeedReader } from "../logs/feed-reader.ts";
import { isSame, type WatchedRun } from "../logs/run-watch.ts";
import type { RunState } from "../store.ts";
import { type LifecycleLine, unreadLines } from "./lifecycle-lines.ts";
import type { LogCursor } from "./log-cursor.ts";
import type { LogsContext } from "./read-logs.ts";

/** One entry of a run's logs. */
export interface LogRecord {
  /** Behind this entry. */
  cursor: LogCursor;
  source: LogSource;
  /** Nanoseconds since the epoch. */
  time: bigint;
  text: string;
}

/** What a follower is told: first `opened`, last `ended`. */
export type LogEvent = { kind: "opened" } | { kind: "entry"; entry: LogRecord } | { kind: "ended" };

/** Follows one run: until it is up, while its machine writes, until it is over. */
export class RunFollower {
  readonly #ctx: LogsContext;
  readonly #sources: ReadonlySet<LogSource>;
  readonly #signal: AbortSignal;
  readonly #bell = new Bell();
  readonly #cursor: LogCursor;
  #run: RunState;
  #watched: WatchedRun | undefined;
  #reader: FeedReader | undefined;

  constructor(
    ctx: LogsContext,
    run: RunState,
    from: LogCursor,
    sources: ReadonlySet<LogSource>,
    signal: AbortSignal,
  ) {
    this.#ctx = ctx;
    this.#run = run;
    this.#cursor = from;
    this.#sources = sources;
    this.#signal = signal;
    signal.addEventListener("abort", this.#bell.ring, { once: true });
  }

  async *events(): AsyncGenerator<LogEvent> {
    if (wasUp(this.#run)) await this.#open();
    yield { kind: "opened" };
    while (!wasUp(this.#run) && !isOver(this.#run)) {
      yield* this.#lines();
      await this.#change();
    }
    if (wasUp(this.#run)) {
      await this.#open();
      yield* this.#output();
    }
    while (!isOver(this.#run)) {
      yield* this.#lines();
      await this.#change();
    }
    yield* this.#lines();
    yield { kind: "ended" };
  }

  close(): void {
    this.#signal.removeEventListener("abort", this.#bell.ring);
    this.#watched?.close();
    this.#reader?.close();
  }

  async #open(): Promise<void> {
    const { stdout, stderr } = this.#cursor;
    this.#reader ??= await this.#ctx.hub.open(this.#run, { stdout, stderr }, this.#bell.ring);
    this.#signal.throwIfAborted();
  }

  // A line that was there from the beginning waits for output that is older, and the last one for all of it; what
  // comes while the run is followed is news.
  async *#output(): AsyncGenerator<LogEvent> {
    const reader = this.#reader;
    if (!reader) return;
    const old = unreadLines(this.#run, this.#cursor.system).filter(({ at }) =>
      isLater(at, this.#run),
    );
    if (this.#sources.has("system")) this.#watch();
    for (;;) {
      const chunk = reader.take();
      if (chunk === "ended") break;
      if (chunk === undefined) {
        yield* this.#lines(({ bit, isLast }) => !isLast && !old.some((line) => line.bit === bit));
        await this.#woken();
      } else {
        yield* this.#lines(({ at, isLast }) => !isLast && nanosOf(at) <= chunk.time);
        yield* this.#entry(chunk);
      }
    }
    reader.close();
    this.#reader = undefined;
  }

  *#entry({ stream, offset, source, time, text }: LogChunk): Generator<LogEvent> {
    this.#cursor[stream] = offset;
    if (!this.#sources.has(source)) return;
    yield { kind: "entry", entry: { cursor: { ...this.#cursor }, source, time, text } };
  }

  *#lines(isDue: (line: LifecycleLine) => boolean = () => true): Generator<LogEvent> {
    if (!this.#sources.has("system")) return;
    for (const line of unreadLines(this.#run, this.#cursor.system).filter(isDue)) {
      this.#cursor.system |= line.bit;
      const { text, at } = line;
      const cursor = { ...this.#cursor };
      yield { kind: "entry", entry: { cursor, source: "system", time: nanosOf(at), text } };
    }
  }

  #watch(): void {
    this.#watched ??= this.#ctx.runs.watch(this.#run, this.#bell.ring);
  }

  /** Returns when the run's row has changed. */
  async #change(): Promise<void> {
    this.#watch();
    let changed = this.#look();
    while (!changed) changed = await this.#woken();
  }

  /** Returns after a ring; whether the run's row has changed. */
  async #woken(): Promise<boolean> {
    await this.#bell.rung();
    this.#signal.throwIfAborted();
    return this.#look();
  }

  #look(): boolean {
    const state = this.#watched?.state;
    if (!state || isSame(state, this.#run)) return false;
    this.#run = state;
    return true;
  }
}

function wasUp({ runningAt }: RunState): boolean {
  return runningAt !== null;
}

/** Not one of those that every run begins with. */
function isLater(at: Date, { runningAt, admittedAt }: RunState): boolean {
  return at > (runningAt ?? admittedAt);
}

function nanosOf(date: Date): bigint {
  return BigInt(date.getTime()) * 1_000_000n;
}

/** Nothing more will come of it. */
function isOver({ closedAt, destroyed, generation, latest }: RunState): boolean {
  return closedAt !== null || destroyed || latest > generation;
}
