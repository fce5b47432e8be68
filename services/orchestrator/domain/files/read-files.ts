import type { Caller } from "../../../../runtime/caller.ts";
import type { ByteRange, FileInfo, OpenFile } from "../../engines/volume-store.ts";
import type { FilesContext } from "./context.ts";
import { translate } from "./faults.ts";
import { inVolume, open } from "./volume.ts";

/** Most entries that are told at once. */
const MOST_ENTRIES = 1_000;

/** A file or directory of a volume; a path is UTF-8, from the volume's root. */
export interface FileKey {
  volumeId: string;
  path: string;
}

/**
 * What is in a directory, in batches and in no promised order.
 * @throws ServiceError
 */
export async function* listFiles(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path }: FileKey,
  signal: AbortSignal,
): AsyncGenerator<FileInfo[]> {
  const { key, files } = await open(ctx, caller, volumeId);
  try {
    for await (const batch of files.list(key, path, signal))
      for (let at = 0; at < batch.length; at += MOST_ENTRIES)
        yield batch.slice(at, at + MOST_ENTRIES);
  } catch (error) {
    throw translate(ctx, error);
  }
}

/** @throws ServiceError */
export function statFile(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path }: FileKey,
): Promise<FileInfo> {
  return inVolume(ctx, caller, volumeId, ({ key, files }) => files.stat(key, path));
}

/**
 * Opens a file; its content has to be read to its end, or closed.
 * @throws ServiceError
 */
export async function readFile(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path, range }: FileKey & { range: ByteRange },
): Promise<OpenFile> {
  const file = await inVolume(ctx, caller, volumeId, ({ key, files }) =>
    files.read(key, path, range),
  );
  return { ...file, content: translated(ctx, file.content), close: () => file.close() };
}

async function* translated(ctx: FilesContext, content: AsyncIterable<Uint8Array>) {
  try {
    yield* content;
  } catch (error) {
    throw translate(ctx, error);
  }
}
