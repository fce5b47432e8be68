import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { VolumeKey } from "../volume-store.ts";
import { fault, isCode } from "./faults.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** Of a folder of ours. */
export const FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Nobody but us: neither users of this host nor sandboxes have a path here. */
const PRIVATE = 0o700;
/** Any user of any of the organization's sandboxes may write at the root of a volume. */
const SHARED = 0o777;

/** What a volume is while something is done in it. */
export interface OpenVolume extends AsyncDisposable {
  /** What sandboxes see. */
  files: FileHandle;
  /** The file system that all of it lies in. */
  dev: bigint;
  /** Where things are put together, or taken apart, unseen; same file system. Closed with the volume. */
  staging(): Promise<FileHandle>;
}

/** Where volumes lie below a folder of this host. The paths here are ours alone; those below `files` are not. */
export class Layout {
  readonly #root: string;

  constructor(root: string) {
    this.#root = root;
  }

  organization(key: VolumeKey): string {
    if (!UUID.test(key.orgId) || !UUID.test(key.volumeId)) throw new Error("these are not UUIDs");
    return join(this.#root, key.orgId);
  }

  /** A directory; a file once the volume is removed. */
  volume(key: VolumeKey): string {
    return join(this.organization(key), key.volumeId);
  }

  /** What sandboxes see, made if it is not there. @throws FileFault: the volume is removed */
  async files(key: VolumeKey): Promise<string> {
    await using _volume = await this.open(key);
    return join(this.volume(key), "files");
  }

  /** Made if it is not there. @throws FileFault: the volume is removed */
  async open(key: VolumeKey): Promise<OpenVolume> {
    try {
      return await this.#open(key);
    } catch (error) {
      if (!isCode(error, "ENOENT")) throw gone(error);
    }
    await this.#make(key);
    return this.#open(key).catch((error: unknown) => {
      throw gone(error);
    });
  }

  /** Undefined: it is not there, not yet or not any more. */
  async openIfThere(key: VolumeKey): Promise<OpenVolume | undefined> {
    try {
      return await this.#open(key);
    } catch (error) {
      if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  async #open(key: VolumeKey): Promise<OpenVolume> {
    const files = await open(join(this.volume(key), "files"), FOLDER);
    try {
      const { dev } = await files.stat({ bigint: true });
      let opened: Promise<FileHandle> | undefined;
      const staging = () => {
        opened ??= open(join(this.volume(key), "staging"), FOLDER);
        return opened;
      };
      const close = async () => {
        await files.close();
        await (await opened?.catch(() => undefined))?.close();
      };
      return { files, dev, staging, [Symbol.asyncDispose]: close };
    } catch (error) {
      await files.close();
      throw error;
    }
  }

  /** Wholly or not at all: whoever sees a volume sees it as it is to be. */
  async #make(key: VolumeKey): Promise<void> {
    const fresh = join(this.organization(key), `new-${randomUUID()}`);
    await mkdir(this.organization(key), { recursive: true, mode: PRIVATE });
    await mkdir(fresh, PRIVATE);
    await mkdir(join(fresh, "staging"), PRIVATE);
    await mkdir(join(fresh, "files"));
    // Not cut by the umask.
    await chmod(join(fresh, "files"), SHARED);
    try {
      await rename(fresh, this.volume(key));
    } catch (error) {
      await rm(fresh, { recursive: true });
      // Somebody was faster, or it is removed.
      if (!isCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) throw error;
    }
  }
}

/** In the place of a volume that was removed lies a file. */
function gone(error: unknown): unknown {
  return isCode(error, "ENOTDIR", "ENOENT")
    ? fault("missing", "/", "is of a volume that is gone")
    : error;
}
