import { setTimeout as sleep } from "node:timers/promises";
import { ServiceError } from "../errors.ts";
import { toConnectError } from "./errors.ts";

export interface BreakerOptions {
  /** Asks the other side for any sign of life; rejects where none comes soon. */
  probe: (signal: AbortSignal) => Promise<void>;
  /** How long it is doubted before calls fail at once, in milliseconds; 3,000 unless set. */
  patienceMs?: number | undefined;
  /** Told when calls begin to fail at once, and when they are made again. */
  onChange?: ((open: boolean) => void) | undefined;
}

// As long as a call that may be repeated bridges an absence: a restart is not yet an outage.
const PATIENCE_MS = 3_000;
const PAUSE_MS = 200;
/** Signs of life that did not come: of one alone this process may be guilty, which may have stood still itself. */
const FEWEST = 2;

/**
 * Whether calls to a service are worth the wait. One that seems away is asked for a sign of life again and again; when
 * none came for a while the breaker opens: every call fails at once, until there is one. So nobody's request is spent on
 * finding out.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  #doubt: AbortController | undefined;
  #open = false;
  #closed = false;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  /** Whether calls fail at once. */
  get isOpen(): boolean {
    return this.#open;
  }

  /** @throws ConnectError (Unavailable) while it is open */
  check(): void {
    if (this.#open)
      throw toConnectError(new ServiceError("SERVICE_UNAVAILABLE", "service unavailable"));
  }

  /** Says that the other side seems away. */
  suspect(): void {
    if (this.#doubt || this.#closed) return;
    this.#doubt = new AbortController();
    void this.#ask(this.#doubt.signal);
  }

  /** Says that it has answered. */
  answered(): void {
    this.#doubt?.abort();
    this.#doubt = undefined;
    if (this.#open) this.#set(false);
  }

  /** Asks no more. */
  close(): void {
    this.#closed = true;
    this.#doubt?.abort();
  }

  async #ask(over: AbortSignal): Promise<void> {
    const { probe, patienceMs = PATIENCE_MS } = this.#options;
    const began = performance.now();
    for (let missed = 1; ; missed += 1) {
      await sleep(PAUSE_MS, undefined, { signal: over, ref: false }).catch(() => undefined);
      if (over.aborted) return;
      const answers = await probe(over).then(
        () => true,
        () => false,
      );
      if (over.aborted) return;
      if (answers) return this.answered();
      const isLong = missed >= FEWEST && performance.now() - began >= patienceMs;
      if (isLong && !this.#open) this.#set(true);
    }
  }

  #set(open: boolean): void {
    this.#open = open;
    this.#options.onChange?.(open);
  }
}
