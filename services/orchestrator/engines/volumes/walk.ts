import { isUtf8 } from "node:buffer";
import type { BigIntStats } from "node:fs";
import type { VolumeKey } from "../volume-store.ts";
import type { TreeEntry } from "./directory-volumes.ts";
import { fault, guardedEach, isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import { ownershipOf } from "./info.ts";
import { Ladder } from "./ladder.ts";
import type { Layout } from "./layout.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath, shownPath } from "./paths.ts";
import { openPlace, readLink } from "./place.ts";
import { openContent, Reading } from "./read.ts";
import { hold } from "./resolve.ts";
import { traverse } from "./traverse.ts";

/** One walk. */
interface Walk {
  layout: Layout;
  key: VolumeKey;
  /** Where it began, from the root on. */
  root: readonly Buffer[];
}

export async function* walk(
  layout: Layout,
  key: VolumeKey,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<TreeEntry> {
  await using volume = await layout.open(key);
  await using place = await hold(volume, parsePath(path), path, { links: "follow" });
  if (!place.found) throw fault("missing", path, "does not exist");
  const { handle, stats } = place.found;
  const walk = { layout, key, root: place.names };
  if (stats.isDirectory()) yield* tree(walk, volume, handle, signal);
  else if (stats.isFile()) yield fileAt(walk, [], stats);
  else throw fault("missing", path, "is neither file nor directory");
}

async function* tree(
  walk: Walk,
  volume: OpenVolume,
  root: Handle,
  signal: AbortSignal,
): AsyncGenerator<TreeEntry> {
  await using ladder = new Ladder(root, volume.dev);
  for await (const step of traverse(ladder, signal)) {
    if (step.kind === "entered") {
      const stats = await step.directory.stat({ bigint: true });
      yield {
        names: textOf(walk, ladder.names),
        entry: { kind: "directory", ...ownershipOf(stats) },
      };
    } else if (step.kind === "entries")
      for (const { name } of step.entries) {
        const names = [...ladder.names, name];
        const found = await look(step.directory, name);
        if (found === "directory") step.below(name);
        else if (found) yield leaf(walk, names, found);
      }
  }
}

/** A link's stats come with what it says. */
type Leaf = { stats: BigIntStats; target: Buffer | undefined };

async function look(directory: Handle, name: Buffer): Promise<Leaf | "directory" | undefined> {
  try {
    await using place = await openPlace(directory, name);
    const stats = await place.stat({ bigint: true });
    if (stats.isDirectory()) return "directory";
    if (stats.isFile()) return { stats, target: undefined };
    if (stats.isSymbolicLink()) return { stats, target: await readLink(directory, name) };
  } catch (error) {
    // It is gone, or no link any more.
    if (!isCode(error, "ENOENT", "EINVAL")) throw error;
  }
  return undefined;
}

function leaf(walk: Walk, names: readonly Buffer[], { stats, target }: Leaf): TreeEntry {
  if (target === undefined) return fileAt(walk, names, stats);
  if (!isUtf8(target)) throw notText(walk, names);
  return { names: textOf(walk, names), entry: { kind: "link", target: target.toString() } };
}

function fileAt(walk: Walk, names: readonly Buffer[], stats: BigIntStats): TreeEntry {
  const { size } = stats;
  const path = shownPath([...walk.root, ...names]);
  const content = () => guardedEach(path, () => contentOf(walk, names, path, size));
  return {
    names: textOf(walk, names),
    entry: { kind: "file", ...ownershipOf(stats), size, content },
  };
}

/** May be read when the walk is long over: its place is looked for anew. */
async function* contentOf(
  { layout, key, root }: Walk,
  below: readonly Buffer[],
  path: string,
  length: bigint,
): AsyncGenerator<Uint8Array> {
  const names = [...root, ...below];
  const file = await openAgain(layout, key, names, path);
  yield* new Reading(file, path, { offset: 0n, length }).content();
}

async function openAgain(layout: Layout, key: VolumeKey, names: readonly Buffer[], path: string) {
  await using volume = await layout.open(key);
  await using place = await hold(volume, names, path, { links: "never" });
  if (!place.found?.stats.isFile())
    throw fault("conflict", path, "is not the file any more that it was");
  return await openContent(place.found.handle);
}

function textOf(walk: Walk, names: readonly Buffer[]): string[] {
  if (!names.every((name) => isUtf8(name))) throw notText(walk, names);
  return names.map((name) => name.toString());
}

function notText({ root }: Walk, names: readonly Buffer[]): Error {
  return fault("conflict", shownPath([...root, ...names]), "is no UTF-8");
}
