import type { Logger } from "./log.ts";

interface Part {
  name: string;
  end: () => Promise<void> | void;
  always: boolean;
}

export interface PartOptions<T> {
  start: () => Promise<T> | T;
  end: (part: T) => Promise<void> | void;
  /** Its end is waited for even when the stop is forced, for it would outlive the program. */
  always?: boolean;
}

/** Starts the parts of a program one after the other, and ends them in the opposite order. */
export class Lifecycle {
  readonly #log: Pick<Logger, "error">;
  readonly #parts: Part[] = [];
  readonly #forced = Promise.withResolvers<void>();
  #starting: Promise<unknown> = Promise.resolve();
  #stopping: Promise<void> | undefined;

  constructor(log: Pick<Logger, "error">) {
    this.#log = log;
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
  }

  /** @throws Error where a stop was asked for meanwhile; the part has been ended then */
  async start<T>(name: string, { start, end, always = false }: PartOptions<T>): Promise<T> {
    this.#refuseStopping();
    const starting = (async () => {
      const part = await start();
      this.#parts.push({ name, end: () => end(part), always });
      return part;
    })();
    this.#starting = starting.catch(() => undefined);
    const part = await starting;
    this.#refuseStopping();
    return part;
  }

  /**
   * Ends everything, once; a part that fails does not keep the others from ending.
   * @param limitMs after which it is forced
   */
  stop(limitMs: number): Promise<void> {
    this.#stopping ??= this.#stopAll(limitMs);
    return this.#stopping;
  }

  /** Waits no longer for parts to end well. */
  force(): void {
    this.#forced.resolve();
  }

  async #stopAll(limitMs: number): Promise<void> {
    const timer = setTimeout(() => this.force(), limitMs);
    await this.#starting;
    for (const part of this.#parts.toReversed()) {
      const ended = this.#endPart(part);
      await (part.always ? ended : Promise.race([ended, this.#forced.promise]));
    }
    clearTimeout(timer);
  }

  async #endPart({ name, end }: Part): Promise<void> {
    try {
      await end();
    } catch (error) {
      this.#log.error({ err: error, part: name }, "could not be ended well");
    }
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
