import type { Logger } from "./log.ts";

interface Part {
  name: string;
  stop: () => Promise<void> | void;
  always: boolean;
}

/** Ends the parts of a program, the last started first. */
export class Lifecycle {
  readonly #log: Pick<Logger, "info" | "error">;
  readonly #parts: Part[] = [];
  readonly #forced = Promise.withResolvers<void>();
  #stopping: Promise<void> | undefined;

  constructor(log: Pick<Logger, "info" | "error">) {
    this.#log = log;
  }

  /** @param always is waited for even when the stop is forced, as what would outlive the program */
  onStop(name: string, stop: () => Promise<void> | void, { always = false } = {}): void {
    this.#parts.push({ name, stop, always });
  }

  get stopping(): boolean {
    return this.#stopping !== undefined;
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
    for (const part of this.#parts.reverse()) {
      const ended = this.#stopPart(part);
      await (part.always ? ended : Promise.race([ended, this.#forced.promise]));
    }
    clearTimeout(timer);
  }

  async #stopPart({ name, stop }: Part): Promise<void> {
    try {
      await stop();
    } catch (error) {
      this.#log.error({ err: error, part: name }, "could not be ended well");
    }
  }
}

/** npm passes on a Ctrl-C that the terminal sends to the whole group: the same one arrives twice. */
const SAME_PRESS_MS = 500;

/** Calls `stop` at the first signal to end, and `force` at a second. */
export function onSignals(stop: (signal: NodeJS.Signals) => void, force: () => void): void {
  let first: number | undefined;
  const handle = (signal: NodeJS.Signals) => {
    if (first === undefined) {
      first = performance.now();
      stop(signal);
    } else if (performance.now() - first > SAME_PRESS_MS) {
      force();
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, handle);
}
