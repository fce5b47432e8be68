import type { Caller } from "../../../../runtime/caller.ts";
import { ServiceError } from "../../../../runtime/errors.ts";
import type { VolumeFiles, VolumeKey } from "../../engines/volume-store.ts";
import type { FilesContext } from "./context.ts";
import { translate } from "./faults.ts";
import { Room } from "./room.ts";

/** A volume whose files can be worked with. */
export interface OpenVolume {
  key: VolumeKey;
  files: VolumeFiles;
}

/**
 * Reads of a volume.
 * @throws ServiceError
 */
export async function inVolume<T>(
  ctx: FilesContext,
  caller: Caller,
  volumeId: string,
  read: (volume: OpenVolume) => Promise<T>,
): Promise<T> {
  const volume = await open(ctx, caller, volumeId);
  try {
    return await read(volume);
  } catch (error) {
    throw translate(ctx, error);
  }
}

/**
 * Changes a volume, with room promised for what it writes.
 * @throws ServiceError
 */
export async function changeVolume<T>(
  ctx: FilesContext,
  caller: Caller,
  volumeId: string,
  change: (volume: OpenVolume & { room: Room }) => Promise<T>,
): Promise<T> {
  const { key, files, capped } = await open(ctx, caller, volumeId);
  const room = new Room(ctx, caller, key, capped);
  await ctx.changes.note(key.volumeId);
  try {
    return await change({ key, files, room });
  } catch (error) {
    throw translate(ctx, error);
  } finally {
    // It is noted already, unless that was long ago.
    await ctx.changes.note(key.volumeId).catch(ctx.complain);
  }
}

/** @throws ServiceError VOLUME_NOT_FOUND; INVALID_SANDBOX_CONFIG where the engine keeps no files */
export async function open(
  ctx: Pick<FilesContext, "store" | "volumes">,
  { orgId }: Caller,
  id: string,
): Promise<OpenVolume & { capped: boolean }> {
  const found = await ctx.store.findVolume(orgId, id);
  if (!found) throw new ServiceError("VOLUME_NOT_FOUND", "resource not found");
  const files = ctx.volumes?.files;
  if (!files)
    throw new ServiceError(
      "INVALID_SANDBOX_CONFIG",
      "this deployment's engine keeps no files of volumes that could be reached",
    );
  const { volumeId, capped } = found;
  return { key: { orgId: found.orgId, volumeId }, files, capped };
}
