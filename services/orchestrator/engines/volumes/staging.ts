import { randomUUID } from "node:crypto";
import { type FileHandle, open, utimes } from "node:fs/promises";
import { type Handle, lookAt } from "./handle.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { at, CREATE, entriesOf } from "./place.ts";
import { isDoomed, removeTree } from "./remove-tree.ts";

const ABANDONED_MS = 60 * 60_000;
const TOUCH_MS = 10 * 60_000;

/** A new name for something that is put together unseen. */
export async function stage(volume: OpenVolume): Promise<Staged> {
  return new Staged(await volume.staging());
}

/** It stays unseen until it is moved to its place; what has none when this is disposed of goes. */
export class Staged implements AsyncDisposable {
  readonly staging: Handle;
  readonly name = Buffer.from(`upload-${randomUUID()}`);
  readonly #timer: NodeJS.Timeout;
  #touching: Promise<void> = Promise.resolve();
  #isPlaced = false;

  constructor(staging: Handle) {
    this.staging = staging;
    // Content may be long in coming: who cleans up sees that somebody is still at it.
    this.#timer = setInterval(() => this.#touch(), TOUCH_MS).unref();
  }

  get path(): Buffer {
    return at(this.staging, this.name);
  }

  /** @param mode cut by the umask */
  createFile(mode = 0o600): Promise<FileHandle> {
    return open(this.path, CREATE, mode);
  }

  /** It has been moved to its place. */
  placed(): void {
    this.#isPlaced = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    await this.#touching;
    if (!this.#isPlaced) await removeTree(this.staging, this.name);
  }

  #touch(): void {
    const now = new Date();
    this.#touching = this.#touching.then(() => utimes(this.path, now, now)).catch(() => {});
  }
}

/** Removes what dead processes have left: what they were removing, and what nobody has touched for an hour. */
export async function cleanStaging(volume: OpenVolume, now = Date.now()): Promise<void> {
  const staging = await volume.staging();
  for await (const entries of entriesOf(staging))
    for (const { name } of entries)
      if (isDoomed(name) || (await lastTouched(staging, name)) < now - ABANDONED_MS)
        await removeTree(staging, name);
}

async function lastTouched(staging: Handle, name: Buffer): Promise<number> {
  const found = await lookAt(at(staging, name));
  return found ? Number(found.mtimeMs) : Number.POSITIVE_INFINITY;
}
