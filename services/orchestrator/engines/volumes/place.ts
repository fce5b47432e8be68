import { constants, type Dirent } from "node:fs";
import { chmod, type FileHandle, mkdir, open, opendir, readlink } from "node:fs/promises";
import { isCode } from "./faults.ts";
import { type Handle, openHandle } from "./handle.ts";

/**
 * The only ways to the kernel in a tree that others change. A directory is held open, and what is in it is reached through
 * `/proc/self/fd/<number>/<one name>`: the number stands for the directory itself, wherever it was moved and whatever lies
 * at its path now, and the one name is never followed if it is a link. `..` is never given to the kernel: a directory that
 * was moved has another parent than the one through which it was reached, and the volume's root has one outside.
 *
 * A number is used again as soon as it is closed. So a handle is closed only when nothing that names it is under way.
 */

/** A handle that stands for a place and opens nothing: a pipe does not block, a device has no effect. */
const O_PATH = 0o10000000;
const { O_NOFOLLOW, O_DIRECTORY, O_RDONLY, O_WRONLY, O_CREAT, O_EXCL } = constants;
const { O_NONBLOCK, O_NOCTTY } = constants;

/** Of a new file: what is there is never opened. */
export const CREATE = O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY;

const DIRECTORY_MODE = 0o755;

/** How many entries the kernel is asked for at once. */
const BATCH = 512;

const SLASH = 0x2f;

/** The path of what a handle stands for. */
export function itself({ fd }: Pick<Handle, "fd">): string {
  if (fd < 0) throw new Error("a directory was closed while it was in use");
  return `/proc/self/fd/${fd}`;
}

/** The path of one name in a directory that is held open. */
export function at(directory: Handle, name: Buffer): Buffer {
  const text = name.toString("latin1");
  if (text === "" || text === "." || text === ".." || name.includes(SLASH) || name.includes(0))
    throw new Error("this is not a name in a directory");
  return Buffer.concat([Buffer.from(`${itself(directory)}/`), name]);
}

/** What a name stands for now, a link itself. */
export function openPlace(directory: Handle, name: Buffer): Promise<Handle> {
  return openHandle(at(directory, name), O_PATH | O_NOFOLLOW);
}

/**
 * A directory in a directory. One that lies in another file system is a mount, and not of this volume.
 * @throws the kernel's ENOTDIR where it is a link or a file, EXDEV where it is a mount
 */
export async function openDirectory(directory: Handle, name: Buffer, dev: bigint): Promise<Handle> {
  const child = await openHandle(at(directory, name), O_PATH | O_NOFOLLOW | O_DIRECTORY);
  try {
    const stats = await child.stat({ bigint: true });
    if (stats.dev === dev) return child;
    throw Object.assign(new Error("EXDEV: a mount"), { code: "EXDEV", syscall: "open" });
  } catch (error) {
    await child.close();
    throw error;
  }
}

/** Another handle of the same place, of a directory or a file. */
export function again(place: Handle): Promise<FileHandle> {
  return open(itself(place), O_PATH);
}

/**
 * To read what a handle of a regular file stands for: it stays that very file.
 * Whoever has a lease on it could make an open wait; so it does not, and fails with EAGAIN.
 */
export function openToRead(file: Handle): Promise<FileHandle> {
  return open(itself(file), O_RDONLY | O_NONBLOCK | O_NOCTTY);
}

export function readLink(directory: Handle, name: Buffer): Promise<Buffer> {
  return readlink(at(directory, name), { encoding: "buffer" });
}

/** Makes one for everybody to read; one that is there, or whatever is, is left as it is. */
export async function makeDirectoryIn(directory: Handle, name: Buffer): Promise<void> {
  try {
    await mkdir(at(directory, name), DIRECTORY_MODE);
    await letIn(directory, name);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
}

/** What this process's umask has cut is given back. */
async function letIn(directory: Handle, name: Buffer): Promise<void> {
  if ((process.umask() & DIRECTORY_MODE) === 0) return;
  const made = await openHandle(at(directory, name), O_PATH | O_NOFOLLOW | O_DIRECTORY);
  try {
    await chmod(itself(made), DIRECTORY_MODE);
  } finally {
    await made.close();
  }
}

export interface Entry {
  name: Buffer;
  /** A hint: by the time it is looked at it may be another. */
  isDirectory: boolean;
}

/** What is in a directory, in its own order, in batches; the names are whatever bytes they are. */
export async function* entriesOf(directory: Handle): AsyncGenerator<Entry[]> {
  const options = { encoding: "buffer", bufferSize: BATCH };
  // Its types know text alone.
  const opened = await opendir(itself(directory), options as { bufferSize: number });
  let batch: Entry[] = [];
  for await (const entry of opened as unknown as AsyncIterable<Dirent<Buffer>>) {
    batch.push({ name: entry.name, isDirectory: entry.isDirectory() });
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
