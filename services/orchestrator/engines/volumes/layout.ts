import { randomUUID } from "node:crypto";
import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { VolumeKey } from "../volume-store.ts";
import { fault, isCode } from "./faults.ts";
import { type OpenVolume, OpenVolumes } from "./open-volumes.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Nobody but us: neither users of this host nor sandboxes have a path here. */
const PRIVATE = 0o700;
/** Any user of any of the organization's sandboxes may write at the root of a volume. */
const SHARED = 0o777;

/** How long a volume is kept open that nobody uses: somebody with many small files comes again at once. */
const IDLE_MS = 250;

/** Where volumes lie below a folder of this host. The paths here are ours alone; those below `files` are not. */
export class Layout {
  readonly #root: string;
  readonly #opened = new OpenVolumes(IDLE_MS);

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

  /** A volume is not at its place any more: nothing of it is held open for whoever comes next. */
  async giveUp(key: VolumeKey): Promise<void> {
    await this.#opened.giveUp(this.volume(key));
  }

  #open(key: VolumeKey): Promise<OpenVolume> {
    return this.#opened.take(this.volume(key));
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
