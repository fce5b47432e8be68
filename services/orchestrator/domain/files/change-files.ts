import type { Caller } from "../../../../runtime/caller.ts";
import { ServiceError } from "../../../../runtime/errors.ts";
import type { FilesContext } from "./context.ts";
import { once, type Replayed } from "./once.ts";
import type { FileKey } from "./read-files.ts";
import { changeVolume, inVolume } from "./volume.ts";

/** Makes a directory with its parents; one that is there is left as it is. */
export function makeDirectory(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path }: FileKey,
  signal: AbortSignal,
): Promise<Replayed> {
  const act = () =>
    changeVolume(ctx, caller, volumeId, ({ key, files }) => files.makeDirectory(key, path));
  return once(ctx, caller, { verb: "volume_file_mkdir", volumeId, act, again: act }, signal);
}

/** Moves within a volume, in one step. */
export function renameFile(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, from, to }: { volumeId: string; from: string; to: string },
  signal: AbortSignal,
): Promise<Replayed> {
  const act = () =>
    changeVolume(ctx, caller, volumeId, ({ key, files }) => files.rename(key, from, to));
  // Gone from where it was, and where it was to be: the try before has got that far.
  const again = () =>
    act().catch(async (error: unknown) => {
      const is = (path: string) => exists(ctx, caller, { volumeId, path });
      if (!isMissing(error) || (await is(from)) || !(await is(to))) throw error;
    });
  return once(ctx, caller, { verb: "volume_file_rename", volumeId, act, again }, signal);
}

/** Removes a file, or a directory; one with content where it is recursive. */
export function removeFile(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path, recursive }: FileKey & { recursive: boolean },
  signal: AbortSignal,
): Promise<Replayed> {
  const act = () =>
    changeVolume(ctx, caller, volumeId, ({ key, files }) =>
      files.remove(key, path, recursive, signal),
    );
  const again = () =>
    act().catch((error: unknown) => {
      if (!isMissing(error)) throw error;
    });
  return once(ctx, caller, { verb: "volume_file_remove", volumeId, act, again }, signal);
}

/** @throws ServiceError, but for a path that is not there */
export async function exists(ctx: FilesContext, caller: Caller, of: FileKey): Promise<boolean> {
  return (await kindOf(ctx, caller, of)) !== undefined;
}

/** What is at a path; undefined: nothing. */
export async function kindOf(ctx: FilesContext, caller: Caller, { volumeId, path }: FileKey) {
  try {
    const info = await inVolume(ctx, caller, volumeId, ({ key, files }) => files.stat(key, path));
    return info.kind;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "VOLUME_FILE_NOT_FOUND";
}
