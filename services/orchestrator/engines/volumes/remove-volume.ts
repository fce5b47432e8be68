import { randomUUID } from "node:crypto";
import { lstat, mkdir, readdir, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineUnavailable } from "../engine.ts";
import type { VolumeKey } from "../volume-store.ts";
import { isCode } from "./faults.ts";
import { openHandle } from "./handle.ts";
import type { Layout } from "./layout.ts";
import { FOLDER } from "./open-volumes.ts";
import { entriesOf } from "./place.ts";
import { removeTree } from "./remove-tree.ts";

/** No request that was let in before a removal comes later than that. */
const MARK_KEPT_MS = 24 * 60 * 60_000;
const MOST_PASSES = 100;

/**
 * A volume is moved aside first, and then taken apart there. In its place a file is left for a day: a late request
 * does not make the volume anew.
 */
export async function removeVolume(
  layout: Layout,
  key: VolumeKey,
  signal: AbortSignal,
): Promise<void> {
  const aside = `${layout.volume(key)}.removed`;
  // Also of an organization that has nothing yet: its first write may have been let in before.
  await mkdir(aside, { recursive: true, mode: 0o700 });
  await moveAside(layout.volume(key), aside);
  await layout.giveUp(key);
  await takeApart(aside, signal);
  await forgetOldMarks(layout.organization(key));
}

async function moveAside(volume: string, aside: string): Promise<void> {
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    if (await isDirectory(volume))
      await rename(volume, join(aside, randomUUID())).catch(unless("ENOENT"));
    await writeFile(volume, "", { flag: "wx", mode: 0o600 }).catch(unless("EEXIST", "EISDIR"));
    if (!(await isDirectory(volume))) return;
  }
  throw new EngineUnavailable("a volume is made again and again while it is to be removed");
}

async function takeApart(aside: string, signal: AbortSignal): Promise<void> {
  for (let pass = 0; pass < MOST_PASSES; pass++) {
    await clear(aside, signal);
    try {
      return await rmdir(aside);
    } catch (error) {
      if (isCode(error, "ENOENT")) return;
      if (!isCode(error, "ENOTEMPTY", "EEXIST")) throw error;
    }
  }
  throw new EngineUnavailable("somebody goes on to write into a volume that is to be removed");
}

async function clear(aside: string, signal: AbortSignal): Promise<void> {
  const directory = await openHandle(aside, FOLDER);
  try {
    for await (const entries of entriesOf(directory))
      for (const { name } of entries) await removeTree(directory, name, signal);
  } finally {
    await directory.close();
  }
}

/** Marks that have done their work, and what a process left that died while it made a volume. */
async function forgetOldMarks(organization: string): Promise<void> {
  for (const name of await readdir(organization)) {
    const path = join(organization, name);
    const stats = await lstat(path).catch(unless("ENOENT"));
    if (!stats || stats.mtimeMs > Date.now() - MARK_KEPT_MS) continue;
    if (stats.isFile() || name.startsWith("new-")) await rm(path, { recursive: true, force: true });
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return (await lstat(path).catch(unless("ENOENT")))?.isDirectory() ?? false;
}

/** What an act comes to that may fail with these. */
function unless(...codes: string[]): (error: unknown) => undefined {
  return (error) => {
    if (!isCode(error, ...codes)) throw error;
    return undefined;
  };
}
