import { orgSuspended, type PublicError, toPublicError } from "../errors.ts";
import type { Holder } from "./key-cache.ts";

// With a look-up, and a stream that tells of changes, it is over well within a second.
const LOOK_MS = 200;

/** A key, and how to find out again whose it is. */
export interface KeyLook {
  /** The same for the same key. */
  id: string;
  /**
   * From memory where that is believed, else asked for.
   * @throws PublicError (invalid_api_key); whatever else a look-up ends in
   */
  look: () => Holder | Promise<Holder>;
}

/** The answers that go on with one key. */
interface Held extends KeyLook {
  cuts: Set<AbortController>;
  /** A look-up is under way. */
  asking: boolean;
}

/** Breaks off answers that go on for longer than their key is good. */
export class HeldKeys {
  readonly #held = new Map<string, Held>();
  #timer: NodeJS.Timeout | undefined;

  /** Aborts `cut`, with the PublicError that says why, when the key is not good any more. @returns what ends that */
  hold({ id, look }: KeyLook, cut: AbortController): () => void {
    const held = this.#held.get(id) ?? { id, look, cuts: new Set(), asking: false };
    this.#held.set(id, held);
    held.cuts.add(cut);
    this.#timer ??= setInterval(() => this.#lookAtAll(), LOOK_MS);
    return () => this.#release(held, cut);
  }

  #release(held: Held, cut: AbortController): void {
    held.cuts.delete(cut);
    if (held.cuts.size > 0 || this.#held.get(held.id) !== held) return;
    this.#held.delete(held.id);
    if (this.#held.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  // However many answers a key has, it is looked at once.
  #lookAtAll(): void {
    for (const held of this.#held.values()) if (!held.asking) void lookAt(held);
  }
}

async function lookAt(held: Held): Promise<void> {
  held.asking = true;
  try {
    const { suspended } = await held.look();
    if (suspended) cutAll(held, orgSuspended());
  } catch (error) {
    // Where nobody can be asked it is not known to be bad either.
    const why = toPublicError(error);
    if (why.code === "invalid_api_key") cutAll(held, why);
  } finally {
    held.asking = false;
  }
}

function cutAll({ cuts }: Held, why: PublicError): void {
  for (const cut of cuts) cut.abort(why);
}
