import type { Handle } from "./handle.ts";
import { openDirectory } from "./place.ts";

/** Of the parents so many are held for each doubling of the way up to them. */
const NEAR = 4;

/**
 * A directory below another, with the names that led to it, so that its parents can be gone back to. Of the parents only some
 * are held open, the near ones all and the far ones ever more sparsely; one that is not is opened again from the nearest
 * above it, one name at a time. That may be another directory by then, but never one outside.
 *
 * A handle that it gives is good until it moves.
 */
export class Ladder implements AsyncDisposable {
  readonly names: Buffer[] = [];
  readonly #root: Handle;
  readonly #dev: bigint;
  #kept: { depth: number; handle: Handle }[] = [];

  /** @param root stays the caller's to close */
  constructor(root: Handle, dev: bigint) {
    this.#root = root;
    this.#dev = dev;
  }

  /** @throws what openDirectory does; then nothing has moved */
  async down(name: Buffer): Promise<Handle> {
    const child = await openDirectory(await this.here(), name, this.#dev);
    this.names.push(name);
    await this.#keep(child);
    return child;
  }

  /** The caller knows that it is not at the root. */
  async up(): Promise<void> {
    const top = this.#kept.at(-1);
    if (top?.depth === this.names.length) this.#kept.pop();
    else if (this.names.length === 0) throw new Error("there is nothing above the root");
    this.names.pop();
    if (top && top.depth > this.names.length) await top.handle.close();
  }

  /** The directory where it is. */
  async here(): Promise<Handle> {
    let top = this.#kept.at(-1) ?? { depth: 0, handle: this.#root };
    for (const name of this.names.slice(top.depth)) {
      const handle = await openDirectory(top.handle, name, this.#dev);
      top = { depth: top.depth + 1, handle };
      await this.#keep(handle, top.depth);
    }
    return top.handle;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { handle } of this.#kept.splice(0)) await handle.close();
  }

  async #keep(handle: Handle, depth = this.names.length): Promise<void> {
    this.#kept.push({ depth, handle });
    const dropped = this.#kept.filter((kept) => !isHeld(kept.depth, depth));
    this.#kept = this.#kept.filter((kept) => isHeld(kept.depth, depth));
    for (const { handle } of dropped) await handle.close();
  }
}

/** The rounder the number of a level (in twos), the longer it is held; so going all the way up opens few of them again. Pure. */
function isHeld(level: number, depth: number): boolean {
  return (level & -level) * NEAR >= depth - level;
}
