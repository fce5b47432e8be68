import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rename, utimes } from "node:fs/promises";
import { isCode } from "./faults.ts";
import { type Handle, lookAt } from "./handle.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { at, CREATE, entriesOf, openDirectory } from "./place.ts";
import { doomedName, isDoomed, removeTree } from "./remove-tree.ts";

const ABANDONED_MS = 60 * 60_000;
const TOUCH_MS = 10 * 60_000;

/** A new name for something that is put together unseen. */
export async function stage(volume: OpenVolume): Promise<Staged> {
  return new Staged(await volume.staging());
}

/**
 * The same for what gets times of its own: it lies in a folder by whose time it is told that somebody is still at it.
 */
export async function stageApart(volume: OpenVolume): Promise<Staged> {
  const staging = await volume.staging();
  const name = stagedName();
  await mkdir(at(staging, name), 0o700);
  return new StagedApart(staging, name, await openDirectory(staging, name, volume.dev));
}

function stagedName(): Buffer {
  return Buffer.from(`upload-${randomUUID()}`);
}

/** It stays unseen until it is moved to its place; what has none when this is disposed of goes. */
export class Staged implements AsyncDisposable {
  /** The directory that it lies in. */
  readonly staging: Handle;
  readonly name = stagedName();
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

  /** What shows by its time that somebody is still at it. */
  protected get dated(): Buffer {
    return this.path;
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
    this.#touching = this.#touching.then(() => utimes(this.dated, now, now)).catch(() => {});
  }
}

class StagedApart extends Staged {
  readonly #above: Handle;
  readonly #folder: Buffer;

  constructor(above: Handle, folder: Buffer, handle: Handle) {
    super(handle);
    this.#above = above;
    this.#folder = folder;
  }

  protected override get dated(): Buffer {
    return at(this.#above, this.#folder);
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      await super[Symbol.asyncDispose]();
    } finally {
      await this.staging.close();
      await removeTree(this.#above, this.#folder);
    }
  }
}

/** Removes what dead processes have left: what they were removing, and what nobody has touched for an hour. */
export async function cleanStaging(volume: OpenVolume, signal: AbortSignal): Promise<void> {
  const abandoned = Date.now() - ABANDONED_MS;
  const staging = await volume.staging();
  for await (const entries of entriesOf(staging))
    for (const { name } of entries)
      if (isDoomed(name)) await removeTree(staging, name, signal);
      else if ((await lastTouched(staging, name)) < abandoned)
        await removeAbandoned(staging, name, signal);
}

/** In one step, so that whoever is at it after all finds nothing, and never a part. */
async function removeAbandoned(staging: Handle, name: Buffer, signal: AbortSignal): Promise<void> {
  const doomed = doomedName();
  try {
    await rename(at(staging, name), at(staging, doomed));
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  await removeTree(staging, doomed, signal);
}

async function lastTouched(staging: Handle, name: Buffer): Promise<number> {
  const found = await lookAt(at(staging, name));
  return found ? Number(found.mtimeMs) : Number.POSITIVE_INFINITY;
}
