// With its way through a stream a change is heard of in less than a second.
const TRUST_MS = 700;

/** What the stream of key changes vouches for. All times are of `performance.now()`, in milliseconds. */
export class Currency {
  #since = Number.POSITIVE_INFINITY;
  #until = Number.NEGATIVE_INFINITY;
  /** Of what was told last, what every change up to then was told of. */
  #provenAt: number | undefined;

  /** Every change that was committed `ageMs` ago, or earlier, has been told. */
  current(ageMs: number): void {
    const now = performance.now();
    // After a lapse nobody knows what was missed: only what is asked from now on counts.
    if (now >= this.#until) this.#since = now;
    this.#until = Math.max(this.#until, now + TRUST_MS - ageMs);
    this.#provenAt = Math.max(this.#provenAt ?? Number.NEGATIVE_INFINITY, now - ageMs);
  }

  /** How long ago it was that every change had been told; undefined: it never was. */
  ageMs(): number | undefined {
    return this.#provenAt === undefined ? undefined : performance.now() - this.#provenAt;
  }

  /** The stream broke off. */
  lost(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** Whether every change since then that is not some moments old has been told. */
  vouchesSince(began: number): boolean {
    return began > this.#since && performance.now() < this.#until;
  }
}
