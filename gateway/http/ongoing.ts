import { serviceUnavailable } from "../errors.ts";

/** What goes on for longer than a call may: streams of events, files that come and go. */
export class Ongoing {
  readonly #streams = new Set<AbortController>();
  readonly #transfers = new Set<AbortController>();
  #draining = false;
  #over = false;

  /**
   * Counts a stream that may go on for ever, and that its client can resume; while the gateway drains it is cut at once.
   * @param cut aborted by a drain, with the PublicError that says so
   * @returns what ends that
   */
  follow(cut: AbortController): () => void {
    if (this.#draining) cut.abort(drained());
    this.#streams.add(cut);
    return () => void this.#streams.delete(cut);
  }

  /**
   * Counts something that comes to an end.
   * @param cut aborted when the time to drain is over, with the PublicError that says so
   * @returns what ends that
   * @throws PublicError (service_unavailable) where that is over
   */
  enter(cut: AbortController): () => void {
    if (this.#over) throw drained();
    this.#transfers.add(cut);
    return () => void this.#transfers.delete(cut);
  }

  /** Cuts streams off where they are: their clients resume them elsewhere. */
  drain(): void {
    this.#draining = true;
    for (const cut of this.#streams) cut.abort(drained());
  }

  /** Cuts all of it off, and lets nothing begin. */
  end(): void {
    this.drain();
    this.#over = true;
    for (const cut of this.#transfers) cut.abort(drained());
  }
}

function drained() {
  return serviceUnavailable("shutting down");
}
