import type { BigIntStats } from "node:fs";
import { chmod, chown, lchown, lutimes, mkdir, open, symlink, utimes } from "node:fs/promises";
import { type CopyJob, copyFile } from "./copy-file.ts";
import { isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import { forUtimes, ownershipOf } from "./info.ts";
import { Ladder } from "./ladder.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { at, CREATE, type Entry, itself, openDirectory, openPlace, readLink } from "./place.ts";
import type { Staged } from "./staging.ts";
import { traverse } from "./traverse.ts";

const PRIVATE = 0o700;

/** A directory with all that is in it, links as links; what is neither file, directory nor link is left out. */
export async function copyTree(
  volume: OpenVolume,
  source: Handle,
  staged: Staged,
  job: CopyJob,
): Promise<void> {
  await mkdir(staged.path, PRIVATE);
  const target = await openDirectory(staged.staging, staged.name, volume.dev);
  try {
    await using from = new Ladder(source, volume.dev);
    await using to = new Ladder(target, volume.dev);
    await copyBetween(from, to, job);
  } finally {
    await target.close();
  }
}

async function copyBetween(from: Ladder, to: Ladder, job: CopyJob): Promise<void> {
  const levels: BigIntStats[] = [];
  for await (const step of traverse(from, job.signal)) {
    if (step.kind === "entered") {
      levels.push(await step.directory.stat({ bigint: true }));
      const name = from.names.at(-1);
      if (name) await makeBelow(to, name);
    } else if (step.kind === "entries") {
      for (const entry of step.entries)
        if (await isTree(step.directory, entry, await to.here(), job)) step.below(entry.name);
    } else {
      // Last, for what is put into a directory changes its time.
      await keepAttributes(await to.here(), levels.pop());
      if (to.names.length > 0) await to.up();
    }
  }
}

async function makeBelow(to: Ladder, name: Buffer): Promise<void> {
  await mkdir(at(await to.here(), name), PRIVATE);
  await to.down(name);
}

async function keepAttributes(directory: Handle, stats: BigIntStats | undefined) {
  if (!stats) throw new Error("a directory was left that was not entered");
  const { mode, uid, gid } = ownershipOf(stats);
  const own = ownershipOf(await directory.stat({ bigint: true }));
  if (uid !== own.uid || gid !== own.gid) await chown(itself(directory), uid, gid);
  await chmod(itself(directory), mode);
  await utimes(itself(directory), forUtimes(stats.atimeNs), forUtimes(stats.mtimeNs));
}

/** Copies what is no directory. @returns whether it is one */
async function isTree(
  directory: Handle,
  { name, isDirectory }: Entry,
  target: Handle,
  job: CopyJob,
): Promise<boolean> {
  if (isDirectory) return true;
  try {
    const source = await openPlace(directory, name);
    try {
      const stats = await source.stat({ bigint: true });
      if (stats.isSymbolicLink())
        await copyLink(await readLink(directory, name), at(target, name), stats);
      else if (stats.isFile()) await copyInto(source, at(target, name), job);
      return stats.isDirectory();
    } finally {
      await source.close();
    }
  } catch (error) {
    // It is gone, or no link any more.
    if (isCode(error, "ENOENT", "EINVAL")) return false;
    throw error;
  }
}

async function copyInto(source: Handle, path: Buffer, job: CopyJob): Promise<void> {
  const file = await open(path, CREATE, 0o600);
  try {
    await copyFile(source, file, job);
  } finally {
    await file.close();
  }
}

async function copyLink(target: Buffer, path: Buffer, stats: BigIntStats): Promise<void> {
  await symlink(target, path);
  const { uid, gid } = ownershipOf(stats);
  if (uid !== 0 || gid !== 0) await lchown(path, uid, gid);
  await lutimes(path, forUtimes(stats.atimeNs), forUtimes(stats.mtimeNs));
}
