import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import {
  EngineUnavailable,
  type LogChunk,
  type LoggedRun,
  type LogPosition,
} from "../../engine.ts";
import { DockerError, translate } from "../call.ts";
import type { DockerContext } from "../context.ts";
import { ChunkReader } from "./chunks.ts";
import { frames } from "./frames.ts";
import { Freshness } from "./freshness.ts";
import { newestFrame, type OpenLog, openLog } from "./open-log.ts";
import { noticeSilence } from "./silence.ts";

/** How long the daemon may be away, or come back and break off again, before a reader is told. */
const PATIENCE_MS = 30_000;
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** A reading that lasted so long was a good one, though nothing was written meanwhile. */
const GOOD_MS = 5_000;

/**
 * See Engine.logs.
 * @param patienceMs how long the daemon may be away
 */
export async function readLogs(
  ctx: DockerContext,
  run: LoggedRun,
  after: LogPosition,
  signal: AbortSignal,
  patienceMs = PATIENCE_MS,
): Promise<AsyncIterable<LogChunk>> {
  const first = await openLog(ctx, run, after, signal);
  return new LogFollower(ctx, run, after, signal, patienceMs).chunks(first);
}

/** A reading that the daemon, or its reader, let fall behind: the next one begins where it is. */
const BEHIND = new Error("the reading fell behind");

/** Reads one run's log, and takes it up again where a reading breaks off. */
class LogFollower {
  readonly #ctx: DockerContext;
  readonly #run: LoggedRun;
  readonly #position: LogPosition;
  readonly #signal: AbortSignal;
  readonly #patienceMs: number;
  readonly #freshness = new Freshness();
  /** Readings since the last good one, and when that one broke off. */
  #fruitless = 0;
  #since = 0;

  constructor(
    ctx: DockerContext,
    run: LoggedRun,
    after: LogPosition,
    signal: AbortSignal,
    patienceMs: number,
  ) {
    this.#ctx = ctx;
    this.#run = run;
    this.#position = { ...after };
    this.#signal = signal;
    this.#patienceMs = patienceMs;
  }

  async *chunks(first: OpenLog | undefined): AsyncGenerator<LogChunk> {
    for (let log = first; log && !this.#signal.aborted; log = await this.#reopen()) {
      const broken = yield* this.#reading(log);
      if (this.#signal.aborted || (log.whole && broken === undefined)) return;
      // Another reading at once, if this one brought anything.
      if (broken !== BEHIND || this.#fruitless > 0) await this.#pause(broken);
      this.#fruitless = Math.max(1, this.#fruitless);
    }
  }

  /** @returns why it broke off; undefined: it came to its end */
  async *#reading({ containerId, stream, whole }: OpenLog): AsyncGenerator<LogChunk, unknown> {
    const reader = new ChunkReader(this.#position);
    const began = performance.now();
    const check = () => void this.#checkBehind(containerId, reader, stream);
    this.#freshness.opened(stream.headers.date);
    try {
      for await (const frame of frames(noticeSilence(stream, check))) {
        if (frame.stream === "daemon") throw new Error(frame.payload.toString());
        for (const chunk of this.#delivered(reader.read(frame.stream, frame))) {
          yield chunk;
          if (this.#freshness.isLate(chunk.time)) return BEHIND;
        }
      }
      if (whole) yield* this.#delivered(reader.end());
      return undefined;
    } catch (error) {
      return error ?? new Error("it broke off");
    } finally {
      stream.destroy();
      if (performance.now() - began > GOOD_MS) this.#fruitless = 0;
    }
  }

  // A daemon that has rotated its files may go on to look at an old one.
  async #checkBehind(containerId: string, reader: ChunkReader, stream: IncomingMessage) {
    try {
      const newest = await newestFrame(this.#ctx, containerId, this.#signal);
      if (!newest || newest.stream === "daemon") return;
      if (reader.isNews(newest.stream, newest)) stream.destroy(BEHIND);
    } catch {
      // The daemon is away: the reading itself will tell.
    }
  }

  *#delivered(chunks: readonly LogChunk[]): Generator<LogChunk> {
    for (const chunk of chunks) {
      this.#position[chunk.stream] = chunk.offset;
      this.#fruitless = 0;
      yield chunk;
    }
  }

  // A machine that ended between the opening and the end of the reading is read once more, for the
  // daemon may let the last lines of a log that it follows slip.
  async #reopen(): Promise<OpenLog | undefined> {
    for (;;) {
      try {
        return await openLog(this.#ctx, this.#run, this.#position, this.#signal);
      } catch (error) {
        if (this.#signal.aborted) return undefined;
        if (!(error instanceof EngineUnavailable || error instanceof DockerError)) throw error;
        await this.#pause(error);
      }
    }
  }

  /** @throws EngineUnavailable when patience is over */
  async #pause(cause: unknown): Promise<void> {
    if (this.#fruitless === 0) this.#since = performance.now();
    else if (cause !== undefined && performance.now() - this.#since > this.#patienceMs)
      throw unavailable(cause);
    const ms = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#fruitless, 5));
    this.#fruitless += 1;
    await sleep(ms, undefined, { signal: this.#signal }).catch(() => undefined);
  }
}

function unavailable(cause: unknown): EngineUnavailable {
  const error = translate(cause);
  if (error instanceof EngineUnavailable) return error;
  const why = error instanceof Error ? error.message : String(error);
  return new EngineUnavailable(`Docker's log cannot be read: ${why}`, { cause });
}
