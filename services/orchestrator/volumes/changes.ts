/** For how long a note holds; a volume is measured about this long after its last change at the latest. */
export const NOTED_SECS = 60;
/** What has to be left of a note. */
const MARGIN_MS = 15_000;
const MANY = 10_000;

/**
 * Notes of volumes that change, in the database, so that whoever leads measures them, also when this process dies. A
 * volume that is written again and again is noted now and then.
 */
export class Changes {
  readonly #write: (volumeIds: readonly string[], secs: number) => Promise<void>;
  /** Until when a note holds, by the process's own clock. */
  readonly #noted = new Map<string, number>();

  constructor(write: (volumeIds: readonly string[], secs: number) => Promise<void>) {
    this.#write = write;
  }

  /** To be called before a change, and again behind it. */
  async note(...volumeIds: readonly string[]): Promise<void> {
    const now = performance.now();
    const due = volumeIds.filter((id) => (this.#noted.get(id) ?? 0) < now + MARGIN_MS);
    if (due.length === 0) return;
    await this.#write(due, NOTED_SECS);
    if (this.#noted.size > MANY) this.#noted.clear();
    for (const id of due) this.#noted.set(id, now + NOTED_SECS * 1_000);
  }
}
