import type { FileHandle } from "node:fs/promises";
import type { VolumeFiles, VolumeKey, VolumeStore } from "../volume-store.ts";

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
   * Makes what is missing of a path, for something to be mounted there.
   * @throws FileFault where a link or something of another kind is in the way
   */
  makeMountPoint(volume: VolumeKey, path: string, kind: Located["kind"]): Promise<void>;
  /**
   * All that is at and below a path, parents first, links not followed below it; what is neither file, directory nor link is
   * left out.
   * @throws FileFault
   */
  walk(volume: VolumeKey, path: string, signal: AbortSignal): AsyncIterable<TreeEntry>;
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

/** @param root absolute path; made when the first volume is */
export function createDirectoryVolumes(_options: { root: string }): DirectoryVolumes {
  const missing = () => {
    throw new Error("not built yet");
  };
  const files = {
    list: missing,
    stat: missing,
    read: missing,
    write: missing,
    makeDirectory: missing,
    copy: missing,
    rename: missing,
    remove: missing,
  };
  return {
    files,
    remove: missing,
    measure: missing,
    directory: missing,
    locate: missing,
    makeMountPoint: missing,
    walk: missing,
  };
}
