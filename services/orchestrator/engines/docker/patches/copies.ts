import { type Allocation, EngineFailure } from "../../engine.ts";
import { FileFault } from "../../volume-store.ts";
import type { DirectoryVolumes, TreeEntry } from "../../volumes/directory-volumes.ts";
import type { DockerContext } from "../context.ts";
import type { Change } from "./overlay.ts";

/** What copy patches copy from. */
export interface CopySource {
  /**
   * What is at and below a path, parents first. Contents are read when they are needed, and have to be of their size still.
   * @param label of the field that asks, for what is wrong
   * @throws EngineFailure
   */
  walk(path: string, label: string): AsyncIterable<CopiedEntry>;
}

export interface CopiedEntry {
  /** Names below the path; empty: itself. */
  names: readonly string[];
  change: Change;
}

/** The organization's host volume; undefined: this sandbox copies nothing. */
export function copiesFor(
  { volumes }: DockerContext,
  { orgId, volumes: allocated }: Allocation,
  signal: AbortSignal,
): CopySource | undefined {
  const host = allocated[""];
  if (!volumes || !host) return undefined;
  return copiesOf(volumes, { orgId, volumeId: host.volumeId }, signal);
}

function copiesOf(
  volumes: DirectoryVolumes,
  volume: { orgId: string; volumeId: string },
  signal: AbortSignal,
): CopySource {
  return {
    async *walk(path, label) {
      const tree = named(label, volumes.walk(volume, path, signal));
      for await (const { names, entry } of tree) yield { names, change: changeOf(entry, label) };
    },
  };
}

function changeOf(entry: TreeEntry["entry"], label: string): Change {
  if (entry.kind === "link") return entry;
  const { mode, uid, gid } = entry;
  if (entry.kind === "directory") return { kind: "directory", fresh: true, mode, uid, gid };
  const stored = { size: Number(entry.size), read: () => named(label, entry.content()) };
  return { kind: "file", mode, uid, gid, content: [stored] };
}

async function* named<T>(label: string, all: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* all;
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    throw new EngineFailure(`${label}: ${error.message}`);
  }
}
