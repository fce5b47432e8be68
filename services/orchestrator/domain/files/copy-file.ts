import type { Caller } from "../../../../runtime/caller.ts";
import { ServiceError } from "../../../../runtime/errors.ts";
import { kindOf } from "./change-files.ts";
import type { FilesContext } from "./context.ts";
import { once, type Replayed } from "./once.ts";
import { changeVolume } from "./volume.ts";

interface Copy {
  volumeId: string;
  from: string;
  to: string;
}

/** Copies a file, or a directory with all that is in it, within a volume. */
export function copyFile(
  ctx: FilesContext,
  caller: Caller,
  copy: Copy,
  signal: AbortSignal,
): Promise<Replayed> {
  const { volumeId } = copy;
  const act = () => copyOnce(ctx, caller, copy, signal);
  // A directory appears wholly or not at all, and stands in its own way the second time.
  const again = () =>
    act().catch(async (error: unknown) => {
      const is = (path: string) => kindOf(ctx, caller, { volumeId, path });
      if (!isConflict(error) || (await is(copy.to)) !== "directory") throw error;
      if ((await is(copy.from)) !== "directory") throw error;
    });
  return once(ctx, caller, { verb: "volume_file_copy", volumeId, act, again }, signal);
}

function copyOnce(
  ctx: FilesContext,
  caller: Caller,
  { volumeId, from, to }: Copy,
  signal: AbortSignal,
): Promise<void> {
  return changeVolume(ctx, caller, volumeId, async ({ key, files, room }) => {
    let written = 0n;
    try {
      await files.copy(key, from, to, room.admit, signal);
      written = room.taken;
    } finally {
      await room.settle(written);
    }
  });
}

function isConflict(error: unknown): boolean {
  return error instanceof ServiceError && error.reason === "FILE_CONFLICT";
}
