import { isUtf8 } from "node:buffer";
import type { BigIntStats } from "node:fs";
import { FileFault, type FileInfo } from "../volume-store.ts";
import { fault, isCode } from "./faults.ts";
import { type Handle, lookAt } from "./handle.ts";
import { infoOf } from "./info.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { inParallel } from "./parallel.ts";
import { isUp, parsePath, shownPath } from "./paths.ts";
import { at, entriesOf } from "./place.ts";
import { hold, type Place, resolve } from "./resolve.ts";

/** Larger directories come as they are: to sort one it has to be held in memory. */
const MOST_SORTED = 10_000;
const BATCH = 512;
const WIDTH = 16;

export async function stat(volume: OpenVolume, path: string): Promise<FileInfo> {
  const asked = parsePath(path);
  await using place = await resolve(volume, asked, path, { links: "follow" });
  const info = place.found && infoOf(pathOf(asked, place), place.found.stats);
  if (info) return info;
  throw fault("missing", path, place.found ? "is no file that could be read" : "does not exist");
}

/** The path as it was asked for, where that says where it is. Pure. */
export function pathOf(asked: readonly Buffer[], { names }: Pick<Place, "names">): string {
  return shownPath(asked.some(isUp) ? names : asked);
}

export async function* list(
  volume: OpenVolume,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<FileInfo[]> {
  const asked = parsePath(path);
  await using place = await hold(volume, asked, path, { links: "follow" });
  if (!place.found) throw fault("missing", path, "does not exist");
  if (!place.found.stats.isDirectory()) throw fault("conflict", path, "is no directory");
  const above = asked.some(isUp) ? place.names : asked;
  const listing = { volume, directory: place.found.handle, names: place.names, above };
  for await (const names of namesIn(place.found.handle)) {
    signal.throwIfAborted();
    const found = await inParallel(names, WIDTH, (name) => look(listing, name));
    const infos = found.filter((info) => info !== undefined);
    if (infos.length > 0) yield infos;
  }
}

/** In batches; what is no UTF-8 has no path that a client could ask for. */
async function* namesIn(directory: Handle): AsyncGenerator<Buffer[]> {
  let held: Buffer[] | undefined = [];
  for await (const entries of entriesOf(directory)) {
    const names = entries.map(({ name }) => name).filter((name) => isUtf8(name));
    if (held === undefined) {
      yield names;
      continue;
    }
    held.push(...names);
    if (held.length <= MOST_SORTED) continue;
    yield* batches(held);
    held = undefined;
  }
  if (held) yield* batches(held.sort(Buffer.compare));
}

function* batches(names: Buffer[]): Generator<Buffer[]> {
  for (let i = 0; i < names.length; i += BATCH) yield names.slice(i, i + BATCH);
}

interface Listing {
  volume: OpenVolume;
  directory: Handle;
  /** Where it is, without links. */
  names: readonly Buffer[];
  /** Where the client sees it. */
  above: readonly Buffer[];
}

async function look(listing: Listing, name: Buffer): Promise<FileInfo | undefined> {
  const path = shownPath([...listing.above, name]);
  const stats = await lookAt(at(listing.directory, name));
  // A mount.
  if (stats?.isDirectory() && stats.dev !== listing.volume.dev) return undefined;
  if (!stats?.isSymbolicLink()) return stats && infoOf(path, stats);
  const target = await behind(listing, name, path);
  return target && infoOf(path, target);
}

/** What a link leads to; undefined: nothing, or nothing of this volume. */
async function behind(
  { volume, names }: Listing,
  name: Buffer,
  path: string,
): Promise<BigIntStats | undefined> {
  try {
    await using place = await resolve(volume, [...names, name], path, { links: "follow" });
    return place.found?.stats;
  } catch (error) {
    if (error instanceof FileFault || isCode(error, "ENOENT", "ENOTDIR", "EXDEV", "ENAMETOOLONG"))
      return undefined;
    throw error;
  }
}
