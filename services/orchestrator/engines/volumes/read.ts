import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { ByteRange, OpenFile } from "../volume-store.ts";
import { fault, guarded, isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import { infoOf, versionOf } from "./info.ts";
import { pathOf } from "./list.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { openToRead } from "./place.ts";
import { hold } from "./resolve.ts";

export const CHUNK = 512 * 1024;

/** A sandbox may have a lease on a file; it is asked to give it up, and has this long. */
const LEASE_TRIES = 40;
const LEASE_WAIT_MS = 50;

export async function read(volume: OpenVolume, path: string, range: ByteRange): Promise<OpenFile> {
  const asked = parsePath(path);
  await using place = await hold(volume, asked, path, { links: "follow" });
  if (!place.found) throw fault("missing", path, "does not exist");
  if (place.found.stats.isDirectory()) throw fault("conflict", path, "is a directory");
  if (!place.found.stats.isFile()) throw fault("missing", path, "is no file that could be read");
  const file = await openContent(place.found.handle);
  try {
    const stats = await file.stat({ bigint: true });
    const info = infoOf(pathOf(asked, place), stats);
    if (!info) throw new Error("a file has become something else");
    const reading = new Reading(file, path, cut(range, stats));
    return { info, version: versionOf(stats), ...cut(range, stats), ...partsOf(reading) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** @param file a handle that stands for a regular file */
export async function openContent(file: Handle): Promise<FileHandle> {
  for (let left = LEASE_TRIES; ; left--)
    try {
      return await openToRead(file);
    } catch (error) {
      if (!isCode(error, "EAGAIN") || left === 0) throw error;
      await sleep(LEASE_WAIT_MS);
    }
}

interface Span {
  offset: bigint;
  length: bigint;
}

/** Pure. */
function cut(range: ByteRange, { size }: Pick<BigIntStats, "size">): Span {
  const wanted = "last" in range ? size - range.last : range.offset;
  const offset = wanted < 0n ? 0n : wanted > size ? size : wanted;
  const most = "last" in range ? size : (range.length ?? size);
  return { offset, length: most < size - offset ? most : size - offset };
}

function partsOf(reading: Reading): Pick<OpenFile, "content" | "close"> {
  return { content: reading.content(), close: () => reading.close() };
}

/** Reads a part of a file, one chunk ahead of whoever takes it. */
export class Reading {
  readonly #file: FileHandle;
  readonly #path: string;
  readonly #end: bigint;
  #at: bigint;
  /** The file is never closed while it is read: its number would stand for another file. */
  #read: Promise<Buffer> | undefined;
  #closed: Promise<void> | undefined;

  constructor(file: FileHandle, path: string, { offset, length }: Span) {
    this.#file = file;
    this.#path = path;
    this.#at = offset;
    this.#end = offset + length;
  }

  async *content(): AsyncGenerator<Uint8Array> {
    try {
      for (let next = this.#next(); next; ) {
        const chunk = await next;
        next = this.#next();
        yield chunk;
      }
    } finally {
      await this.close();
    }
  }

  close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#read?.catch(() => {});
      await this.#file.close();
    })();
    return this.#closed;
  }

  #next(): Promise<Buffer> | undefined {
    if (this.#at === this.#end) return undefined;
    this.#read = guarded(this.#path, () => this.#chunk());
    // Whoever takes it hears of it; perhaps nobody does.
    this.#read.catch(() => {});
    return this.#read;
  }

  async #chunk(): Promise<Buffer> {
    if (this.#closed) throw new Error("it was closed while it was read");
    const left = this.#end - this.#at;
    const chunk = Buffer.allocUnsafeSlow(left < CHUNK ? Number(left) : CHUNK);
    const { bytesRead } = await this.#file.read(chunk, 0, chunk.length, this.#at);
    if (bytesRead === 0) throw fault("conflict", this.#path, "was cut while it was read");
    this.#at += BigInt(bytesRead);
    return chunk.subarray(0, bytesRead);
  }
}

/** The kernel may take less than it is given. */
export async function writeAllAt(file: FileHandle, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}
