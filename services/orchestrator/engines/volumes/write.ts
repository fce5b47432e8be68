import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { Admit, FileInfo } from "../volume-store.ts";
import { fault, isCode } from "./faults.ts";
import { fill } from "./fill.ts";
import { infoOf, ownershipOf } from "./info.ts";
import { pathOf } from "./list.ts";
import { moveTo } from "./move-to.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { type Place, type ResolveOptions, resolve } from "./resolve.ts";
import { type Staged, stage } from "./staging.ts";

const FILE_MODE = 0o644;

export async function write(
  volume: OpenVolume,
  path: string,
  content: AsyncIterable<Uint8Array>,
  admit: Admit,
): Promise<FileInfo> {
  const names = parsePath(path);
  const check = (place: Place) => checkReplaceable(place, path);
  await lookAhead(volume, names, path, { links: "follow" }, check);
  await using staged = await stage(volume);
  const file = await staged.createFile(FILE_MODE);
  try {
    await fill(file, content, admit);
    return await putInPlace(volume, names, path, staged, file);
  } finally {
    await file.close();
  }
}

/** Refuses what cannot come to anything, before any of it is done; what counts is how it is at the end. */
export async function lookAhead(
  volume: OpenVolume,
  names: readonly Buffer[],
  path: string,
  options: ResolveOptions,
  check: (place: Place) => void,
): Promise<void> {
  try {
    await using place = await resolve(volume, names, path, { ...options, make: "later" });
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
  // From then on a sandbox may change it.
  const info = infoOf(pathOf(names, place), await takeOver(file, place));
  if (!info) throw new Error("a file has become something else");
  await moveTo(staged.path, place, path);
  staged.placed();
  return info;
}

/**
 * Mode and owner of what it replaces; nobody's rights to act as another go over to new content.
 * @returns what the file is then
 */
async function takeOver(file: FileHandle, { found }: Place): Promise<BigIntStats> {
  const stats = await file.stat({ bigint: true });
  const own = ownershipOf(stats);
  const { mode, uid, gid } = found ? ownershipOf(found.stats) : { ...own, mode: FILE_MODE };
  const isAnothers = uid !== own.uid || gid !== own.gid;
  const isOtherMode = (mode & 0o777) !== own.mode;
  if (!isAnothers && !isOtherMode) return stats;
  if (isAnothers) await file.chown(uid, gid);
  if (isOtherMode) await file.chmod(mode & 0o777);
  return file.stat({ bigint: true });
}
