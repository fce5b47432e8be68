/** Wakes one who waits for any of several things; a ring while nobody waits is kept. */
export class Bell {
  #rung = false;
  #resume: (() => void) | undefined;

  readonly ring = (): void => {
    this.#rung = true;
    this.#resume?.();
  };

  /** Returns once it was rung since it last returned. */
  async rung(): Promise<void> {
    if (!this.#rung)
      await new Promise<void>((resolve) => {
        this.#resume = resolve;
      });
    this.#resume = undefined;
    this.#rung = false;
  }
}
