/** Machines whose sandbox does not exist, and for how long each has been seen. */
export class Orphans {
  /** By the process's own clock. */
  #since = new Map<string, number>();

  /**
   * @param unknown those of the latest comparison; one that is missing is forgotten
   * @returns those that have been seen for that long
   */
  due(unknown: readonly string[], delayMs: number): string[] {
    const now = performance.now();
    this.#since = new Map(unknown.map((id) => [id, this.#since.get(id) ?? now]));
    return unknown.filter((id) => now - (this.#since.get(id) ?? now) >= delayMs);
  }
}
