import { ServiceError } from "../errors.ts";
import { toConnectError } from "./errors.ts";

/** What is under way to one service, and how much of it there may be: a slow one must not take all that its callers have. */
export class Bulkhead {
  readonly #most: number;
  #inside = 0;
  #refused = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** How many are under way, and were refused since the start. */
  get numbers(): { underWay: number; refused: number } {
    return { underWay: this.#inside, refused: this.#refused };
  }

  /**
   * @returns what ends it; may be called again
   * @throws ConnectError (Unavailable) where no more may be under way
   */
  enter(): () => void {
    if (this.#inside >= this.#most) {
      this.#refused += 1;
      throw toConnectError(new ServiceError("SERVICE_UNAVAILABLE", "too many calls are under way"));
    }
    this.#inside += 1;
    let left = false;
    return () => {
      if (!left) this.#inside -= 1;
      left = true;
    };
  }
}
