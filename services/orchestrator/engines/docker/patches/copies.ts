import { posix } from "node:path";
import { type Allocation, EngineFailure } from "../../engine.ts";
import { FileFault } from "../../volume-store.ts";
import type { DirectoryVolumes, TreeEntry } from "../../volumes/directory-volumes.ts";
import type { DockerContext } from "../context.ts";
import type { Stored } from "../write-tar.ts";
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
  const open = (path: string) => volumes.walk(volume, path, signal);
  return {
    async *walk(path, label) {
      try {
        for await (const { names, entry } of open(path)) {
          const read = () => readOne(() => open(posix.join(path, ...names)), entry, label);
          yield { names, change: changeOf(entry, read) };
        }
      } catch (error) {
        throw failure(error, label);
      }
    },
  };
}

function changeOf(entry: TreeEntry["entry"], read: Stored["read"]): Change {
  if (entry.kind === "link") return entry;
  const { mode, uid, gid } = entry;
  if (entry.kind === "directory") return { kind: "directory", fresh: true, mode, uid, gid };
  const content = [{ size: Number(entry.size), read }];
  return { kind: "file", mode, uid, gid, content };
}

// Found anew: a tree may have more files than can be held open.
async function* readOne(
  open: () => AsyncIterable<TreeEntry>,
  before: TreeEntry["entry"],
  label: string,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const { names, entry } of open()) {
      if (names.length > 0) break;
      if (before.kind !== "file" || entry.kind !== "file" || entry.size !== before.size) break;
      yield* entry.content();
      return;
    }
  } catch (error) {
    throw failure(error, label);
  }
  throw new EngineFailure(`${label}: was changed while it was copied`);
}

function failure(error: unknown, label: string): unknown {
  return error instanceof FileFault ? new EngineFailure(`${label}: ${error.message}`) : error;
}
