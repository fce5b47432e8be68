import type { BigIntStats } from "node:fs";
import type { FileInfo } from "../volume-store.ts";

/** What a protobuf or RFC 3339 timestamp can say; a file's may be any 64-bit number. */
const EARLIEST = Date.parse("0001-01-01T00:00:00Z");
const LATEST = Date.parse("9999-12-31T23:59:59.999Z");
const NS_PER_MS = 1_000_000n;
/** The kernel's clock for files may stand still for so long. */
const TICK_MS = 50;

/** Undefined: it is neither file nor directory. Pure. */
export function kindOf(stats: BigIntStats): FileInfo["kind"] | undefined {
  if (stats.isDirectory()) return "directory";
  return stats.isFile() ? "file" : undefined;
}

/** Undefined: it is neither file nor directory. Pure. */
export function infoOf(path: string, stats: BigIntStats): FileInfo | undefined {
  const kind = kindOf(stats);
  return kind && { path, kind, size: stats.size, ...ownershipOf(stats), ...timesOf(stats) };
}

/** Mode is permission bits. Pure. */
export function ownershipOf(stats: BigIntStats): { mode: number; uid: number; gid: number } {
  return { mode: Number(stats.mode & 0o7777n), uid: Number(stats.uid), gid: Number(stats.gid) };
}

/**
 * Another one as soon as the content may be another. A file that was changed just now could change again without its time
 * moving: its version is good for nothing but itself.
 */
export function versionOf(stats: BigIntStats, now = Date.now()): string {
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  const parts = [dev, ino, size, mtimeNs, ctimeNs].map((part) => part.toString(36));
  const isSettled = Number(ctimeNs / NS_PER_MS) < now - TICK_MS;
  return (isSettled ? parts : [...parts, crypto.randomUUID()]).join(".");
}

/** What of a volume's room it takes: holes do not count, nor what is set aside behind its end. Pure. */
export function bytesOf({ size, blocks }: BigIntStats): bigint {
  const kept = blocks * 512n;
  return kept < size ? kept : size;
}

/** As utimes takes it: to less than a microsecond, or before 1970, where it takes no numbers, to a millisecond. Pure. */
export function forUtimes(ns: bigint): number | Date {
  return ns < 0n ? dateOf(ns) : Number(ns) / 1e9;
}

function timesOf({ atimeNs, mtimeNs, birthtimeNs }: BigIntStats) {
  return {
    accessedAt: dateOf(atimeNs),
    modifiedAt: dateOf(mtimeNs),
    createdAt: birthtimeNs > 0n ? dateOf(birthtimeNs) : null,
  };
}

function dateOf(ns: bigint): Date {
  return new Date(Math.min(LATEST, Math.max(EARLIEST, Number(ns / NS_PER_MS))));
}
