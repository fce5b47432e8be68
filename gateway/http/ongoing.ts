import { serviceUnavailable } from "../errors.ts";

/** What goes on for longer than a call may: streams of events, files that come and go. */
export class Ongoing {
  readonly #cuts = new Set<AbortController>();
  #draining = false;

  /**
   * Counts something that goes on.
   * @param cut aborted by a drain, with the PublicError that says so
   * @returns what ends that
   * @throws PublicError (service_unavailable) where the gateway drains
   */
  enter(cut: AbortController): () => void {
    if (this.#draining) throw drained();
    this.#cuts.add(cut);
    return () => void this.#cuts.delete(cut);
  }

  /** Cuts all of it off where it is, and lets nothing begin. */
  drain(): void {
    this.#draining = true;
    for (const cut of this.#cuts) cut.abort(drained());
  }
}

function drained() {
  return serviceUnavailable("shutting down");
}
