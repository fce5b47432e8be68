import type { IncomingMessage } from "node:http";

/** The body of a request as it comes. Nothing of it is read before it is asked for. */
export class RequestBody {
  readonly #raw: IncomingMessage;
  readonly #signal: AbortSignal;
  readonly #most: number;
  /** Something is waited for that the client has to send. */
  waiting = false;
  #wake = () => {};

  /**
   * @param signal when it aborts, who waits for more is told its reason
   * @param most bytes that are read at once; as they come where it is not set
   */
  constructor(raw: IncomingMessage, signal: AbortSignal, most = Number.POSITIVE_INFINITY) {
    this.#raw = raw;
    this.#signal = signal;
    this.#most = most;
    const wake = () => this.#wake();
    for (const event of ["end", "error", "close"]) raw.once(event, wake);
    signal.addEventListener("abort", wake, { once: true });
  }

  /**
   * What has come since, or comes next; undefined: that was all of it.
   * @throws the signal's reason; Error where the client ended before its body did
   */
  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      this.#signal.throwIfAborted();
      // Nothing named where nothing is there: that asks for more.
      const size = Math.min(this.#raw.readableLength, this.#most) || undefined;
      const chunk: Buffer | null = this.#raw.read(size);
      if (chunk !== null) return chunk;
      if (this.#raw.readableEnded) return undefined;
      if (this.#raw.destroyed) throw new Error("the client hung up");
      await this.#more();
    }
  }

  async #more(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    this.waiting = true;
    this.#raw.once("readable", resolve);
    await promise;
    this.waiting = false;
    this.#raw.off("readable", resolve);
  }
}
