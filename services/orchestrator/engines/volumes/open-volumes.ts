import { constants } from "node:fs";
import { join } from "node:path";
import { shareLook } from "../../share.ts";
import { type Handle, lookAt, openHandle } from "./handle.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

/** Of a folder of ours. */
export const FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

/** Most that are kept while nobody uses them; two descriptors each. */
const MOST_IDLE = 64;

/** What a volume is while something is done in it. */
export interface OpenVolume extends AsyncDisposable {
  /** What sandboxes see. */
  files: Handle;
  /** The file system that all of it lies in. */
  dev: bigint;
  /** Where things are put together, or taken apart, unseen; same file system. Closed with the volume. */
  staging(): Promise<Handle>;
}

/**
 * Volumes that are open, each once for all who use it at the same time, and a while longer. Whoever takes one that was open
 * is sure that it is still the one at its path: another process may have removed it.
 */
export class OpenVolumes {
  readonly #idleMs: number;
  readonly #kept = new Map<string, Kept>();

  /** @param idleMs how long one is kept that nobody uses */
  constructor(idleMs: number) {
    this.#idleMs = idleMs;
  }

  /** @param folder of the volume. @throws the kernel's error */
  async take(folder: string): Promise<OpenVolume> {
    const kept = this.#kept.get(folder);
    if (kept) {
      kept.enter();
      if (await kept.isThere().catch(() => false)) return this.#lend(folder, kept);
      await this.#giveUp(folder, kept);
      await kept.leave();
    }
    const fresh = await open(folder);
    fresh.enter();
    const other = this.#kept.get(folder);
    if (other) await this.#giveUp(folder, other);
    this.#kept.set(folder, fresh);
    return this.#lend(folder, fresh);
  }

  /** It is not the volume at its path any more; closed when the last has done with it. */
  async giveUp(folder: string): Promise<void> {
    const kept = this.#kept.get(folder);
    if (kept) await this.#giveUp(folder, kept);
  }

  async #giveUp(folder: string, kept: Kept): Promise<void> {
    if (this.#kept.get(folder) === kept) this.#kept.delete(folder);
    await kept.giveUp();
  }

  #lend(folder: string, kept: Kept): OpenVolume {
    const { files, dev } = kept;
    return {
      files,
      dev,
      staging: () => kept.staging(),
      [Symbol.asyncDispose]: () => this.#giveBack(folder, kept),
    };
  }

  async #giveBack(folder: string, kept: Kept): Promise<void> {
    await kept.leave();
    if (kept.isUsed || this.#kept.get(folder) !== kept) return;
    if (this.#idleMs === 0) return this.#giveUp(folder, kept);
    kept.whenIdleFor(this.#idleMs, () => this.#giveUp(folder, kept));
    // Behind those that were used before it.
    this.#kept.delete(folder);
    this.#kept.set(folder, kept);
    await this.#dropOldest();
  }

  async #dropOldest(): Promise<void> {
    if (this.#kept.size <= MOST_IDLE) return;
    const idle = [...this.#kept].filter(([, kept]) => !kept.isUsed);
    for (const [folder, kept] of idle.slice(0, -MOST_IDLE)) await this.#giveUp(folder, kept);
  }
}

async function open(folder: string): Promise<Kept> {
  const files = await openHandle(join(folder, "files"), FOLDER);
  try {
    const { dev, ino } = await files.stat({ bigint: true });
    return new Kept(folder, files, dev, ino);
  } catch (error) {
    await files.close();
    throw error;
  }
}

/** One of them. */
class Kept {
  readonly files: Handle;
  readonly dev: bigint;
  /** Whether it still lies at its path. */
  readonly isThere: () => Promise<boolean>;
  readonly #folder: string;
  #staging: Promise<Handle> | undefined;
  #users = 0;
  #isGivenUp = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(folder: string, files: Handle, dev: bigint, ino: bigint) {
    this.#folder = folder;
    this.files = files;
    this.dev = dev;
    this.isThere = shareLook(async () => {
      const found = await lookAt(join(folder, "files"));
      return found?.ino === ino && found.dev === dev;
    });
  }

  get isUsed(): boolean {
    return this.#users > 0;
  }

  staging(): Promise<Handle> {
    this.#staging ??= openHandle(join(this.#folder, "staging"), FOLDER).catch((error: unknown) => {
      this.#staging = undefined;
      throw error;
    });
    return this.#staging;
  }

  enter(): void {
    this.#users += 1;
    clearTimeout(this.#timer);
  }

  async leave(): Promise<void> {
    this.#users -= 1;
    if (this.#isGivenUp) await this.#closeUnused();
  }

  whenIdleFor(ms: number, act: () => Promise<void>): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void act().catch(() => {}), ms).unref();
  }

  async giveUp(): Promise<void> {
    this.#isGivenUp = true;
    await this.#closeUnused();
  }

  async #closeUnused(): Promise<void> {
    if (this.isUsed) return;
    clearTimeout(this.#timer);
    await this.files.close();
    await (await this.#staging?.catch(() => undefined))?.close();
  }
}
