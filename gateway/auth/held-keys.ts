import { toPublicError } from "../errors.ts";
import type { Holder } from "./key-cache.ts";

// With a look-up, and a stream that tells of changes, it is over well within a second.
const LOOK_MS = 200;

/**
 * Whose key it is: from memory where that is believed, else asked for.
 * @throws PublicError (invalid_api_key); whatever else a look-up ends in
 */
export type KeyLook = () => Holder | Promise<Holder>;

interface Held {
  look: KeyLook;
  cut: AbortController;
  /** A look-up is under way. */
  asking: boolean;
}

/** Breaks off answers that go on for longer than their key is good. */
export class HeldKeys {
  readonly #held = new Set<Held>();
  #timer: NodeJS.Timeout | undefined;

  /** Aborts `cut` when the key is not good any more. @returns what ends that */
  hold(look: KeyLook, cut: AbortController): () => void {
    const held = { look, cut, asking: false };
    this.#held.add(held);
    this.#timer ??= setInterval(() => this.#lookAtAll(), LOOK_MS);
    return () => this.#release(held);
  }

  #release(held: Held): void {
    this.#held.delete(held);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #lookAtAll(): void {
    for (const held of this.#held) if (!held.asking) void lookAt(held);
  }
}

async function lookAt(held: Held): Promise<void> {
  held.asking = true;
  try {
    const { suspended } = await held.look();
    if (suspended) held.cut.abort();
  } catch (error) {
    // Where nobody can be asked it is not known to be bad either.
    if (toPublicError(error).code === "invalid_api_key") held.cut.abort();
  } finally {
    held.asking = false;
  }
}
