import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import type { Handle } from "./handle.ts";
import { bytesOf, forUtimes, ownershipOf } from "./info.ts";
import { CHUNK, openContent, writeAllAt } from "./read.ts";

const ZEROS = Buffer.alloc(CHUNK);

export interface CopyJob {
  /** Asked before so many bytes more are written. */
  spend(bytes: number): Promise<void>;
  signal: AbortSignal;
}

/**
 * Content, owner, mode and times of a file, as large as it is when this begins or less. Where it has holes, stretches of zeros
 * become holes.
 * @param source stands for a regular file
 * @param target open for writing, and empty
 */
export async function copyFile(source: Handle, target: FileHandle, job: CopyJob): Promise<void> {
  const file = await openContent(source);
  try {
    const stats = await file.stat({ bigint: true });
    await target.truncate(Number(await copyContent(file, stats, target, job)));
    await keepOwnership(target, stats);
    await target.utimes(forUtimes(stats.atimeNs), forUtimes(stats.mtimeNs));
  } finally {
    await file.close();
  }
}

/** @returns how long it is */
async function copyContent(
  file: FileHandle,
  stats: BigIntStats,
  target: FileHandle,
  { spend, signal }: CopyJob,
): Promise<number> {
  const size = Number(stats.size);
  // A hole from end to end, and it may be of many terabytes.
  if (stats.blocks === 0n) return size;
  const hasHoles = bytesOf(stats) < stats.size;
  const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK, size));
  for (let at = 0; at < size; ) {
    signal.throwIfAborted();
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, size - at), at);
    if (bytesRead === 0) return at;
    const chunk = buffer.subarray(0, bytesRead);
    if (!hasHoles || !chunk.equals(ZEROS.subarray(0, bytesRead))) {
      await spend(bytesRead);
      await writeAllAt(target, chunk, at);
    }
    at += bytesRead;
  }
  return size;
}

/** The owner first: a new one takes away the right to act as him. */
async function keepOwnership(target: FileHandle, stats: BigIntStats): Promise<void> {
  const { mode, uid, gid } = ownershipOf(stats);
  const own = ownershipOf(await target.stat({ bigint: true }));
  if (uid !== own.uid || gid !== own.gid) await target.chown(uid, gid);
  await target.chmod(mode);
}
