import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "./log.ts";

interface Part {
  name: string;
  announce: () => void;
  drain: (ms: number) => Promise<void>;
  end: () => Promise<void> | void;
  always: boolean;
}

export interface PartOptions<T> {
  start: () => Promise<T> | T;
  /** Tells those who use it that it will end; it still serves all that comes. */
  announce?: (part: T) => void;
  /**
   * Takes nothing new, and lets what is under way finish while every other part still works.
   * @param ms how long that may take
   */
  drain?: (part: T, ms: number) => Promise<void>;
  end: (part: T) => Promise<void> | void;
  /** Its end is waited for even when the stop is forced, for it would outlive the program. */
  always?: boolean;
}

/** Of the limit, what the drain may take; the rest is for what ends after it. */
const DRAIN_SHARE = 0.8;

type Log = Pick<Logger, "error" | "warn">;

/** Starts the parts of a program one after the other, and ends them in the opposite order. */
export class Lifecycle {
  readonly #log: Log;
  readonly #parts: Part[] = [];
  readonly #forced = Promise.withResolvers<void>();
  #starting: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;
  #isForced = false;

  constructor(log: Log) {
    this.#log = log;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** @throws Error where a stop was asked for meanwhile; the part has been ended then */
  async start<T>(
    name: string,
    { start, announce, drain, end, always = false }: PartOptions<T>,
  ): Promise<T> {
    this.#refuseStopping();
    const starting = (async () => {
      const part = await start();
      this.#parts.push({
        name,
        announce: () => announce?.(part),
        drain: async (ms) => drain?.(part, ms),
        end: () => end(part),
        always,
      });
      return part;
    })();
    const started = starting.catch(() => undefined);
    this.#starting = always ? started : Promise.race([started, this.#forced.promise]);
    const part = await starting;
    this.#refuseStopping();
    return part;
  }

  /**
   * Drains all parts together, then ends them, once; a part that fails does not keep the others from it.
   * @param limitMs after which it is forced
   * @param delayMs before that: it is only said, and everything is still served, for balancers to notice
   */
  stop(limitMs: number, delayMs = 0): Promise<void> {
    this.#stopping ??= this.#stopAll(limitMs, delayMs);
    return this.#stopping;
  }

  /** Waits no longer for parts to end well. */
  force(): void {
    this.#isForced = true;
    this.#forced.resolve();
  }

  async #stopAll(limitMs: number, delayMs: number): Promise<void> {
    const timer = setTimeout(() => this.force(), delayMs + limitMs);
    await this.#starting;
    for (const { announce } of this.#parts) announce();
    if (delayMs > 0) await this.#unlessForced(delay(delayMs, undefined, { ref: false }));
    await this.#unlessForced(this.#drainAll(limitMs * DRAIN_SHARE));
    for (const part of this.#parts.toReversed()) await this.#endPart(part);
    clearTimeout(timer);
  }

  async #drainAll(ms: number): Promise<void> {
    await Promise.all(
      this.#parts.map(({ name, drain }) => this.#settled(name, "drained", drain(ms))),
    );
  }

  async #endPart({ name, end, always }: Part): Promise<void> {
    let isOver = false;
    const ended = this.#settled(name, "ended", (async () => end())()).then(() => {
      isOver = true;
    });
    await (always ? ended : this.#unlessForced(ended));
    if (!isOver) this.#log.warn({ part: name }, "was not ended in time, and is broken off");
  }

  async #settled(part: string, what: string, work: Promise<void>): Promise<void> {
    await work.catch((err: unknown) => {
      this.#log.error({ err, part }, `could not be ${what} well`);
    });
  }

  /** Even a forced stop lets what ends at once do so. */
  async #unlessForced(work: Promise<void>): Promise<void> {
    if (this.#isForced) await Promise.race([work, new Promise((go) => setImmediate(go))]);
    else await Promise.race([work, this.#forced.promise]);
  }

  #refuseStopping(): void {
    if (this.stopping) throw new Error("the program is stopping");
  }
}

/** npm passes on a Ctrl-C that the terminal sends to the whole group: the same one arrives twice. */
const SAME_PRESS_MS = 500;

/**
 * Calls `stop` at the first signal to end, and `force` at a second.
 * @param source of the signals; a test has its own
 */
export function onSignals(
  stop: (signal: NodeJS.Signals) => void,
  force: () => void,
  source: Pick<NodeJS.EventEmitter, "on"> = process,
): void {
  let first: number | undefined;
  const handle = (signal: NodeJS.Signals) => {
    if (first === undefined) {
      first = performance.now();
      stop(signal);
    } else if (performance.now() - first > SAME_PRESS_MS) {
      force();
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) source.on(signal, handle);
}
