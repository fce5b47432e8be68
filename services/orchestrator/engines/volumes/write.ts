import type { FileHandle } from "node:fs/promises";
import type { Admit, FileInfo } from "../volume-store.ts";
import { fault, isCode, ofCaller } from "./faults.ts";
import { infoOf, ownershipOf } from "./info.ts";
import type { OpenVolume } from "./layout.ts";
import { pathOf } from "./list.ts";
import { moveTo } from "./move-to.ts";
import { parsePath } from "./paths.ts";
import { CHUNK, writeAllAt } from "./read.ts";
import { type Place, type ResolveOptions, resolve } from "./resolve.ts";
import { Staged } from "./staging.ts";

const FILE_MODE = 0o644;

export async function write(
  volume: OpenVolume,
  path: string,
  content: AsyncIterable<Uint8Array>,
  admit: Admit,
): Promise<FileInfo> {
  const names = parsePath(path);
  // Before anything is taken from the client; what counts is how it is at the end.
  const check = (place: Place) => checkReplaceable(place, path);
  await lookAtTarget(volume, names, path, { links: "follow" }, check);
  await using staged = new Staged(volume);
  const file = await staged.createFile();
  try {
    await fill(file, content, admit);
    return await putInPlace(volume, names, path, staged, file);
  } finally {
    await file.close();
  }
}

/** As it is before it is begun. */
export async function lookAtTarget(
  volume: OpenVolume,
  names: readonly Buffer[],
  path: string,
  options: ResolveOptions,
  check: (place: Place) => void,
): Promise<void> {
  try {
    await using place = await resolve(volume, names, path, options);
    check(place);
  } catch (error) {
    // A parent that is missing will be made.
    if (!isCode(error, "ENOENT")) throw error;
  }
}

/** @throws FileFault unless a file is there, or nothing */
export function checkReplaceable(place: Place, path: string): void {
  if (place.name === undefined || place.found?.stats.isDirectory())
    throw fault("conflict", path, "is a directory");
  if (place.found && !place.found.stats.isFile())
    throw fault("conflict", path, "is neither file nor directory");
}

async function putInPlace(
  volume: OpenVolume,
  names: readonly Buffer[],
  path: string,
  staged: Staged,
  file: FileHandle,
): Promise<FileInfo> {
  await using place = await resolve(volume, names, path, { links: "follow", make: true });
  checkReplaceable(place, path);
  await takeOver(file, place);
  await file.datasync();
  await moveTo(staged.path, place, path);
  staged.placed();
  const info = infoOf(pathOf(names, place), await file.stat({ bigint: true }));
  if (!info) throw new Error("a file has become something else");
  return info;
}

/** Mode and owner of what it replaces; nobody's rights to act as another go over to new content. */
async function takeOver(file: FileHandle, { found }: Place): Promise<void> {
  const { mode, uid, gid } = found ? ownershipOf(found.stats) : { mode: FILE_MODE, uid: 0, gid: 0 };
  const own = ownershipOf(await file.stat({ bigint: true }));
  if (found && (uid !== own.uid || gid !== own.gid)) await file.chown(uid, gid);
  await file.chmod(mode & 0o777);
}

async function fill(file: FileHandle, content: AsyncIterable<Uint8Array>, admit: Admit) {
  let at = 0;
  for await (const chunks of gathered(content)) {
    const end = chunks.reduce((sum, { length }) => sum + length, at);
    await ofCaller(() => admit(BigInt(end)));
    await writeAll(file, chunks, at);
    at = end;
  }
}

/** Small chunks together, so that each write is a large one. */
async function* gathered(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  const chunks = content[Symbol.asyncIterator]();
  try {
    let held: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const { done, value } = await ofCaller(() => chunks.next());
      if (done) break;
      held.push(value);
      size += value.length;
      if (size < CHUNK) continue;
      yield held;
      held = [];
      size = 0;
    }
    if (size > 0) yield held;
  } finally {
    await ofCaller(async () => chunks.return?.());
  }
}

async function writeAll(file: FileHandle, chunks: readonly Uint8Array[], at: number) {
  const size = chunks.reduce((sum, { length }) => sum + length, 0);
  const { bytesWritten } = await file.writev(chunks, at);
  // The kernel may take less than it is given.
  if (bytesWritten < size)
    await writeAllAt(file, Buffer.concat(chunks).subarray(bytesWritten), at + bytesWritten);
}
