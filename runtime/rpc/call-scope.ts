import { Code, ConnectError } from "@connectrpc/connect";
import { abortError } from "./abort.ts";

/** The longest delay of a timer; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Shared by all calls: the default reason would cost an exception with its stack each. */
const COMPLETED = new ConnectError("the call is over", Code.Canceled);

/** How long a call in memory may go on: until its deadline, or until its caller hangs up. */
export class CallScope {
  /** Aborts with the call's error, or when the call is over. */
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #deadline: number | undefined;
  readonly #timer: NodeJS.Timeout | undefined;
  #fail: ((error: ConnectError) => void) | undefined;

  /**
   * @param timeoutMs rest until the deadline
   * @throws ConnectError (DeadlineExceeded, Canceled) where the call is over before it begins
   */
  constructor(caller: AbortSignal | undefined, timeoutMs: number | undefined) {
    refuseSpent(timeoutMs);
    if (caller?.aborted) throw abortError(caller);
    this.signal = this.#controller.signal;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#onHangUp, { once: true });
    if (timeoutMs === undefined) return;
    this.#deadline = performance.now() + timeoutMs;
    this.#timer = setTimeout(() => this.#abort(expired()), Math.min(timeoutMs, MAX_TIMER_MS));
  }

  /** Milliseconds until the deadline; undefined where there is none. */
  readonly timeoutMs = (): number | undefined =>
    this.#deadline === undefined ? undefined : this.#deadline - performance.now();

  /** Settles as `work` does, or fails as soon as the scope ends, whatever `work` does then. */
  run<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      work.then(resolve, reject).finally(() => this.end());
    });
  }

  readonly #onHangUp = () => {
    if (this.#caller) this.#abort(abortError(this.#caller));
  };

  #abort(error: ConnectError): void {
    this.#fail?.(error);
    this.#controller.abort(error);
  }

  /** Frees what the call held. `run` calls it by itself. */
  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener("abort", this.#onHangUp);
    this.#controller.abort(COMPLETED);
  }
}

/**
 * Refuses a rest that is used up, which Connect's own transports take for no deadline at all.
 * @throws ConnectError (DeadlineExceeded)
 */
export function refuseSpent(timeoutMs: number | undefined): void {
  if (timeoutMs !== undefined && timeoutMs <= 0) throw expired();
}

function expired(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
