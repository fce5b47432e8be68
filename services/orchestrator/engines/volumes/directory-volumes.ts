import type { FileHandle } from "node:fs/promises";
import type { VolumeFiles, VolumeKey, VolumeStore, VolumeUse } from "../volume-store.ts";
import { Cleaning } from "./cleaning.ts";
import { copy } from "./copy.ts";
import { guarded, guardedEach } from "./faults.ts";
import { Layout } from "./layout.ts";
import { list, stat } from "./list.ts";
import { locate, makeDirectory } from "./make.ts";
import { measure } from "./measure.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { read } from "./read.ts";
import { remove } from "./remove.ts";
import { removeVolume } from "./remove-volume.ts";
import { rename } from "./rename.ts";
import { withSecondName } from "./second-name.ts";
import { walk } from "./walk.ts";
import { write } from "./write.ts";

/** Volumes as directories of this host: `<root>/<organization>/<volume>/files` is what a sandbox sees of one. */
export interface DirectoryVolumes extends VolumeStore {
  readonly files: VolumeFiles;
  /** Absolute path of what a sandbox sees of a volume, made if it is not there. No part of it can be changed from inside a sandbox. */
  directory(volume: VolumeKey): Promise<string>;
  /**
   * What a path of a volume leads to, links followed inside the volume, opened as a place (O_PATH) that stays what it is.
   * @throws FileFault
   */
  locate(volume: VolumeKey, path: string): Promise<Located>;
  /**
   * All that is at and below a path, parents first, links not followed below it; what is neither file, directory nor link is
   * left out.
   * @throws FileFault
   */
  walk(volume: VolumeKey, path: string, signal: AbortSignal): AsyncIterable<TreeEntry>;
  /**
   * Gives a file that `locate` found a second name in a folder that is ours alone, while `act` does something that takes a
   * path: no part of it can be changed from inside a sandbox. See nameGiverOf.
   */
  withSecondName<T>(
    volume: VolumeKey,
    file: FileHandle,
    act: (path: string) => Promise<T>,
  ): Promise<T>;
}

export interface Located {
  /** To be closed by whoever asked. */
  handle: FileHandle;
  kind: "file" | "directory";
}

export interface TreeEntry {
  /** Names below the path that was asked for; empty: itself. */
  names: readonly string[];
  entry:
    | { kind: "directory"; mode: number; uid: number; gid: number }
    /** Exactly `size` bytes, or it throws. */
    | {
        kind: "file";
        mode: number;
        uid: number;
        gid: number;
        size: bigint;
        content(): AsyncIterable<Uint8Array>;
      }
    | { kind: "link"; target: string };
}

export interface DirectoryOptions {
  /** Absolute path; made when the first volume is. */
  root: string;
  /** How long a measurement waits for what is cleared away before it; for tests. */
  cleaningMs?: number;
}

export function createDirectoryVolumes({ root, cleaningMs }: DirectoryOptions): DirectoryVolumes {
  const layout = new Layout(root);
  const cleaning = new Cleaning(layout, cleaningMs);
  /** Does something in an open volume. */
  const inside =
    <A extends unknown[], T>(act: (volume: OpenVolume, path: string, ...rest: A) => Promise<T>) =>
    (key: VolumeKey, path: string, ...rest: A): Promise<T> =>
      guarded(path, async () => {
        await using volume = await layout.open(key);
        return await act(volume, path, ...rest);
      });
  return {
    files: {
      list: (key, path, signal) => listed(layout, key, path, signal),
      stat: inside(stat),
      read: inside(read),
      write: inside(write),
      makeDirectory: inside(makeDirectory),
      copy: inside(copy),
      rename: inside(rename),
      remove: inside(remove),
    },
    remove: (key, signal) => guarded("/", () => removeVolume(layout, key, signal)),
    measure: (key, signal) => guarded("/", () => measured(layout, cleaning, key, signal)),
    directory: (key) => guarded("/", () => layout.files(key)),
    locate: inside(locate),
    walk: (key, path, signal) => guardedEach(path, () => walk(layout, key, path, signal)),
    withSecondName: (key, file, act) => withSecondName(layout, key, file, act),
  };
}

async function measured(
  layout: Layout,
  cleaning: Cleaning,
  key: VolumeKey,
  signal: AbortSignal,
): Promise<VolumeUse> {
  signal.throwIfAborted();
  await cleaning.clean(key, signal);
  await using volume = await layout.openIfThere(key);
  if (!volume) return { bytes: 0n, entries: 0 };
  return await measure(volume, signal);
}

function listed(layout: Layout, key: VolumeKey, path: string, signal: AbortSignal) {
  return guardedEach(path, async function* () {
    await using volume = await layout.open(key);
    yield* list(volume, path, signal);
  });
}
