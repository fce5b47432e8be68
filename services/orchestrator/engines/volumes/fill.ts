import type { FileHandle } from "node:fs/promises";
import type { Admit } from "../volume-store.ts";
import { ofCaller } from "./faults.ts";
import { createSlots } from "./parallel.ts";
import { CHUNK, writeAllAt } from "./read.ts";

/** What has been written since it was last brought to disk is never much more: no file makes a thread wait for long. */
const SYNC_EVERY = 64 * 1024 * 1024;
/** Of the process's four threads for files. */
const inTurn = createSlots(2);

/**
 * Writes content into an empty file and brings it to disk, while the next of it comes. A chunk stays as it is
 * once it was given.
 * @throws CallersError where content or admit did
 */
export async function fill(
  file: FileHandle,
  content: AsyncIterable<Uint8Array>,
  admit: Admit,
): Promise<void> {
  const sink = new Sink(file);
  try {
    let total = 0;
    for await (const chunks of gathered(content)) {
      total += sizeOf(chunks);
      await ofCaller(() => admit(BigInt(total)));
      await sink.write(chunks);
    }
    await sink.end();
  } finally {
    await sink.settled();
  }
}

/** One write and one sync at most are under way; the file must not be closed before they have settled. */
class Sink {
  readonly #file: FileHandle;
  #at = 0;
  #synced = 0;
  #writing: Promise<void> = Promise.resolve();
  #syncing: Promise<void> = Promise.resolve();

  constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Returns when there is room for more. */
  async write(chunks: readonly Uint8Array[]): Promise<void> {
    await this.#writing;
    if (this.#at - this.#synced >= SYNC_EVERY) await this.#sync();
    this.#writing = writeAll(this.#file, chunks, this.#at);
    // Whoever comes next hears of it.
    this.#writing.catch(() => {});
    this.#at += sizeOf(chunks);
  }

  async end(): Promise<void> {
    await this.#writing;
    await this.#sync();
    await this.#syncing;
  }

  async settled(): Promise<void> {
    await Promise.allSettled([this.#writing, this.#syncing]);
  }

  async #sync(): Promise<void> {
    await this.#syncing;
    this.#synced = this.#at;
    this.#syncing = inTurn(() => this.#file.datasync());
    this.#syncing.catch(() => {});
  }
}

/** Small chunks together, so that each write is a large one. */
async function* gathered(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  const chunks = content[Symbol.asyncIterator]();
  let isOver = false;
  try {
    let held: Uint8Array[] = [];
    let size = 0;
    while (!isOver) {
      const next = await ofCaller(() => chunks.next());
      isOver = next.done === true;
      if (!next.done) held.push(next.value);
      size += next.done ? 0 : next.value.length;
      if (held.length === 0 || (!isOver && size < CHUNK)) continue;
      yield held;
      held = [];
      size = 0;
    }
  } finally {
    if (!isOver) await ofCaller(async () => chunks.return?.());
  }
}

function sizeOf(chunks: readonly Uint8Array[]): number {
  return chunks.reduce((sum, { length }) => sum + length, 0);
}

async function writeAll(file: FileHandle, chunks: readonly Uint8Array[], at: number) {
  const { bytesWritten } = await file.writev(chunks, at);
  // The kernel may take less than it is given.
  if (bytesWritten < sizeOf(chunks))
    await writeAllAt(file, Buffer.concat(chunks).subarray(bytesWritten), at + bytesWritten);
}
