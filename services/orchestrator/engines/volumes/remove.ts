import { rename, rmdir, unlink } from "node:fs/promises";
import { fault, isCode } from "./faults.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { at } from "./place.ts";
import { doomedName, removeTree } from "./remove-tree.ts";
import { resolve } from "./resolve.ts";

/** Somebody may put one kind of thing in the place of another meanwhile. */
const TRIES = 100;

/** A directory goes in one step, for whoever looks, and then what was in it. */
export async function remove(
  volume: OpenVolume,
  path: string,
  recursive: boolean,
  signal: AbortSignal,
): Promise<void> {
  await using place = await resolve(volume, parsePath(path), path, { links: "stay" });
  if (place.name === undefined) throw fault("conflict", path, "is the volume's root");
  if (!place.found) throw fault("missing", path, "does not exist");
  const target = at(place.parent, place.name);
  for (let left = TRIES; left > 0; left--) {
    if (await is(() => unlink(target), "EISDIR")) return;
    // Awaited here: the place is closed on the way out, and its number may then stand for another directory.
    if (recursive) return await removeAside(volume, target, signal);
    if (await is(() => rmdir(target), "ENOTDIR")) return;
  }
  throw fault("conflict", path, "changes all the time");
}

async function removeAside(volume: OpenVolume, target: Buffer, signal: AbortSignal) {
  const name = doomedName();
  const staging = await volume.staging();
  await rename(target, at(staging, name));
  await removeTree(staging, name, signal).catch((error: unknown) => {
    // It is out of everybody's sight, and goes with the next that cleans up.
    if (!isCode(error, "EBUSY")) throw error;
  });
}

/** @returns false where it is of another kind */
async function is(act: () => Promise<void>, otherwise: string): Promise<boolean> {
  try {
    await act();
    return true;
  } catch (error) {
    if (isCode(error, otherwise)) return false;
    throw error;
  }
}
