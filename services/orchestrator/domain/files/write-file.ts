import type { Caller } from "../../../../runtime/caller.ts";
import { invalidRequest } from "../../../../runtime/errors.ts";
import type { FileInfo } from "../../engines/volume-store.ts";
import type { FilesContext } from "./context.ts";
import type { FileKey } from "./read-files.ts";
import { changeVolume } from "./volume.ts";

/** Where a file is to be, and how long it will be, where that is known. */
export type WriteTarget = FileKey & { length: bigint | null };

/**
 * Writes a file, wholly or not at all.
 * @throws ServiceError; whatever the content throws
 */
export function writeFile(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, path, length }: WriteTarget,
  content: AsyncIterable<Uint8Array>,
): Promise<FileInfo> {
  return changeVolume(ctx, caller, volumeId, async ({ key, files, room }) => {
    let written = 0n;
    try {
      if (length !== null) await room.need(length);
      const info = await files.write(key, path, exactly(content, length), room.admit);
      written = room.taken;
      return info;
    } finally {
      await room.settle(written);
    }
  });
}

/** @param length null: any */
async function* exactly(content: AsyncIterable<Uint8Array>, length: bigint | null) {
  let sent = 0n;
  for await (const data of content) {
    sent += BigInt(data.length);
    if (length !== null && sent > length) throw otherLength(`more than ${length} bytes came`);
    if (data.length > 0) yield data;
  }
  if (length !== null && sent < length)
    throw otherLength(`${sent} bytes came in place of ${length}`);
}

function otherLength(message: string) {
  return invalidRequest([{ field: "length", message }]);
}
