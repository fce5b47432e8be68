import { randomUUID } from "node:crypto";
import { rename, rmdir, unlink } from "node:fs/promises";
import { isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import { createSlots, inParallel } from "./parallel.ts";
import { at, type Entry, entriesOf, openDirectory } from "./place.ts";

/** Two descriptors each. */
const DEEPEST = 24;
/** Whoever still has a foot in a tree that is being removed may go on to write there for a while. */
const MOST_PASSES = 1000;
/** Freeing a large file takes long: two of the process's four threads for files do it at most. */
const UNLINKS = 2;
const inTurn = createSlots(UNLINKS);

const PREFIX = "removed-";

/** A new name in a directory of ours for what is on its way out. */
export function doomedName(): Buffer {
  return Buffer.from(`${PREFIX}${randomUUID()}`);
}

/** Whether a name was given to what is on its way out: it goes, whoever began it. */
export function isDoomed(name: Buffer): boolean {
  return name.toString("latin1").startsWith(PREFIX);
}

/**
 * Removes what lies at a name of a directory of ours, files, links and directories with all that is in them; what is gone
 * already is fine. What lies too deep is moved up beside it first, so trees of any depth go, and with few descriptors.
 * May be cut off, and done again, at any moment.
 * @throws the kernel's error, or the signal's reason
 */
export async function removeTree(ours: Handle, name: Buffer, signal?: AbortSignal): Promise<void> {
  const { dev } = await ours.stat({ bigint: true });
  const removal = new Removal(ours, dev, signal);
  await removal.run(name);
}

class Removal {
  readonly #ours: Handle;
  readonly #dev: bigint;
  readonly #signal: AbortSignal | undefined;
  readonly #aside: Buffer[] = [];

  constructor(ours: Handle, dev: bigint, signal: AbortSignal | undefined) {
    this.#ours = ours;
    this.#dev = dev;
    this.#signal = signal;
  }

  async run(name: Buffer): Promise<void> {
    for (let next: Buffer | undefined = name; next; next = this.#aside.pop())
      await this.#remove(this.#ours, { name: next, isDirectory: true }, 0);
  }

  async #remove(parent: Handle, { name, isDirectory }: Entry, depth: number): Promise<void> {
    if (!isDirectory && (await unlinked(parent, name))) return;
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      this.#signal?.throwIfAborted();
      if (await this.#removeDirectory(parent, name, depth)) return;
      // It may have become something else meanwhile.
      if (await unlinked(parent, name)) return;
    }
    throw busy();
  }

  /** @returns false where it is none, or not empty again */
  async #removeDirectory(parent: Handle, name: Buffer, depth: number): Promise<boolean> {
    if (await isGone(() => rmdir(at(parent, name)))) return true;
    if (depth === DEEPEST) return this.#moveUp(parent, name);
    const directory = await this.#open(parent, name);
    if (!directory) return false;
    try {
      await this.#clear(directory, depth);
    } finally {
      await directory.close();
    }
    return isGone(() => rmdir(at(parent, name)));
  }

  async #open(parent: Handle, name: Buffer): Promise<Handle | undefined> {
    try {
      return await openDirectory(parent, name, this.#dev);
    } catch (error) {
      if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  async #clear(directory: Handle, depth: number): Promise<void> {
    for await (const entries of entriesOf(directory)) {
      this.#signal?.throwIfAborted();
      const [trees, leaves] = [entries.filter(isTree), entries.filter((entry) => !isTree(entry))];
      const isLeft = await inParallel(leaves, UNLINKS, ({ name }) => unlinked(directory, name));
      const others = leaves.filter((_, i) => !isLeft[i]);
      for (const entry of [...trees, ...others]) await this.#remove(directory, entry, depth + 1);
    }
  }

  async #moveUp(parent: Handle, name: Buffer): Promise<boolean> {
    const fresh = doomedName();
    const isMoved = !(await isMissing(() => rename(at(parent, name), at(this.#ours, fresh))));
    if (isMoved) this.#aside.push(fresh);
    return true;
  }
}

const isTree = ({ isDirectory }: Entry) => isDirectory;

function busy(): Error {
  const message = "EBUSY: somebody goes on to write there";
  return Object.assign(new Error(message), { code: "EBUSY", syscall: "rmdir" });
}

function unlinked(parent: Handle, name: Buffer): Promise<boolean> {
  return inTurn(() => isGone(() => unlink(at(parent, name))));
}

/** @returns false where it is of another kind, or not empty */
async function isGone(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT")) return true;
    if (isCode(error, "EISDIR", "ENOTDIR", "ENOTEMPTY", "EEXIST")) return false;
    throw error;
  }
}

async function isMissing(act: () => Promise<void>): Promise<boolean> {
  try {
    await act();
    return false;
  } catch (error) {
    if (isCode(error, "ENOENT")) return true;
    throw error;
  }
}
