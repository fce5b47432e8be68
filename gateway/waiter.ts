/** One held request: woken by changes, over when its budget is spent, broken off by a hang-up. */
export class Waiter {
  /** Whether the next look at the sandbox is the last one. */
  over = false;
  #awake = false;
  #resume: (() => void) | undefined;
  readonly #signal: AbortSignal;
  readonly #timer: NodeJS.Timeout | undefined;
  #again: NodeJS.Timeout | undefined;
  readonly #onHangUp = () => this.wake();

  /** @param budgetMs 0: over from the start */
  constructor(budgetMs: number, signal: AbortSignal) {
    this.#signal = signal;
    this.#awake = signal.aborted;
    this.over = budgetMs === 0;
    if (budgetMs > 0) this.#timer = setTimeout(() => this.finish(), budgetMs);
    signal.addEventListener("abort", this.#onHangUp);
  }

  wake(): void {
    this.#awake = true;
    this.#resume?.();
  }

  /** Wakes it once more, later; one that is to be woken later already does not wait longer for it. */
  wakeIn(ms: number): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined;
      this.wake();
    }, ms);
  }

  /** Makes this the last look. */
  finish(): void {
    this.over = true;
    this.wake();
  }

  /**
   * Returns once it was woken since it last returned.
   * @throws the signal's reason where the client hung up
   */
  async woken(): Promise<void> {
    if (!this.#awake)
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    this.#awake = false;
    this.#signal.throwIfAborted();
  }

  dispose(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#again);
    this.#signal.removeEventListener("abort", this.#onHangUp);
  }
}
