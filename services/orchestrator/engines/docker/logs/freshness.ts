const LATE_MS = 500;
const MILLION = 1_000_000n;

/**
 * Tells a reading that keeps up from one that is late. A daemon that follows a log skips a file where it falls behind by
 * more than one rotation; what it has opened at the beginning of a reading it reads in full, at any pace.
 */
export class Freshness {
  /** How much later than the daemon's this machine's clock reads, at most, with the way of a frame. */
  #skewMs = Number.POSITIVE_INFINITY;
  #openedAt = 0;

  /** @param date of the daemon's answer */
  opened(date: string | undefined): void {
    this.#openedAt = Date.now();
    const said = Date.parse(date ?? "");
    if (said > 0) this.#skewMs = Math.min(this.#skewMs, this.#openedAt - said);
  }

  /** Whether what was written at this time was written after the opening and comes late. */
  isLate(time: bigint): boolean {
    const now = Date.now();
    const written = Number(time / MILLION);
    this.#skewMs = Math.min(this.#skewMs, now - written);
    const here = written + this.#skewMs;
    return here > this.#openedAt && now - here > LATE_MS;
  }
}
