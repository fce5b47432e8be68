import type { Stats } from "node:fs";
import { lstat, readdir, readFile, utimes } from "node:fs/promises";
import { join } from "node:path";
import { MARK_FILE } from "../../../../services/orchestrator/engines/volumes/marked-volumes.ts";
import { digestOf } from "./content.ts";

/** What lies on disk of one volume. */
export interface DiskVolume {
  orgId: string;
  id: string;
  /** Digests by path, with a leading `/`. */
  files: Record<string, string>;
  /** As volumes are measured: each file once, holes not counted. */
  bytes: number;
}

export interface Disk {
  volumes: DiskVolume[];
  /** Files that are in no volume. */
  strays: string[];
}

/** Whose volume an engine tries out what it can mount. */
const NOBODY = "00000000-0000-0000-0000-000000000000";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** @param root the folder of volumes, which may not be there yet */
export async function readDisk(root: string): Promise<Disk> {
  const volumes: DiskVolume[] = [];
  const strays: string[] = [];
  for (const orgId of await namesIn(root)) {
    if (orgId === MARK_FILE || orgId === NOBODY) continue;
    for (const id of UUID.test(orgId) ? await namesIn(join(root, orgId)) : [""]) {
      const folder = join(root, orgId, id);
      if (await isTombstone(folder)) continue;
      const found = await walk(folder);
      const inside = found.filter(({ path }) => path.startsWith("/files/"));
      const isVolume = UUID.test(id);
      if (isVolume) volumes.push(await volumeOf(orgId, id, folder, inside));
      const others = isVolume ? found.filter((each) => !inside.includes(each)) : found;
      strays.push(...others.map(({ path }) => join(orgId, id, path)));
    }
  }
  return { volumes, strays };
}

async function volumeOf(
  orgId: string,
  id: string,
  folder: string,
  found: readonly Found[],
): Promise<DiskVolume> {
  const files: Record<string, string> = {};
  for (const { path } of found)
    files[path.slice("/files".length)] = digestOf(await readFile(join(folder, path)));
  const inodes = new Map(found.map(({ stats }) => [stats.ino, stats]));
  const bytes = [...inodes.values()].reduce(
    (sum, { size, blocks }) => sum + Math.min(size, blocks * 512),
    0,
  );
  return { orgId, id, files, bytes };
}

/** What is left in the place of a removed volume, so that no late request makes it anew. */
async function isTombstone(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  return stats?.isFile() === true && stats.size === 0;
}

interface Found {
  /** From the folder, with a leading `/`. */
  path: string;
  stats: Stats;
}

/** Everything below that is no directory. */
async function walk(folder: string, path = ""): Promise<Found[]> {
  const found: Found[] = [];
  for (const name of await namesIn(join(folder, path))) {
    const at = `${path}/${name}`;
    const stats = await lstat(join(folder, at));
    if (stats.isDirectory()) found.push(...(await walk(folder, at)));
    else found.push({ path: at, stats });
  }
  return found;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}

/** What killed processes left of writes is cleared away when nobody has touched it for an hour: that hour is over. */
export async function age(root: string): Promise<void> {
  const then = Date.now() / 1_000 - 2 * 3_600;
  for (const path of (await readDisk(root)).strays)
    await utimes(join(root, path), then, then).catch(() => undefined);
}
