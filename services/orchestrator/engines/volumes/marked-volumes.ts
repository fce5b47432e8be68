import { randomUUID } from "node:crypto";
import { link, mkdir, open, readFile, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { shareLook } from "../../share.ts";
import { EngineTrouble } from "../engine.ts";
import type { VolumeFiles } from "../volume-store.ts";
import type { DirectoryVolumes } from "./directory-volumes.ts";

/** The file that marks a folder of volumes; its content is a UUID. */
export const MARK_FILE = ".sandgate-volumes";

/** The folder is not the one that this installation's volumes are in, or that cannot be said. */
export class ForeignFolder extends EngineTrouble {
  override name = "ForeignFolder";
}

/** Where the installation's mark is written down. */
export interface MarkRecord {
  /** Null: none is. */
  read(): Promise<string | null>;
  /** Writes a mark down, unless there is one. @returns the one that is written down then */
  claim(mark: string): Promise<string>;
}

/**
 * The same volumes, where the folder bears the installation's mark. It is made when volumes are first used. Another folder,
 * or a disk that is not mounted, would show every volume empty: there nothing is made, and everything throws ForeignFolder.
 */
export function markVolumes(
  volumes: DirectoryVolumes,
  root: string,
  record: MarkRecord,
): DirectoryVolumes {
  const mark = new FolderMark(root, record);
  const checked =
    <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      await mark.check();
      return work(...args);
    };
  const checkedStream = <Args extends unknown[], Item>(
    work: (...args: Args) => AsyncIterable<Item>,
  ) =>
    async function* (...args: Args): AsyncGenerator<Item> {
      await mark.check();
      yield* work(...args);
    };
  const { files } = volumes;
  const checkedFiles: VolumeFiles = {
    list: checkedStream(files.list.bind(files)),
    stat: checked(files.stat.bind(files)),
    read: checked(files.read.bind(files)),
    write: checked(files.write.bind(files)),
    makeDirectory: checked(files.makeDirectory.bind(files)),
    copy: checked(files.copy.bind(files)),
    rename: checked(files.rename.bind(files)),
    remove: checked(files.remove.bind(files)),
  };
  return {
    files: checkedFiles,
    // Where nothing was ever put there is nothing to look at, and the folder is left to whoever uses it first.
    remove: async (...of) => {
      if (await mark.isMade()) await checked(volumes.remove.bind(volumes))(...of);
    },
    measure: async (...of) =>
      (await mark.isMade())
        ? checked(volumes.measure.bind(volumes))(...of)
        : { bytes: 0n, entries: 0 },
    directory: checked(volumes.directory.bind(volumes)),
    locate: checked(volumes.locate.bind(volumes)),
    walk: checkedStream(volumes.walk.bind(volumes)),
    withSecondName: async (...of) => {
      await mark.check();
      return await volumes.withSecondName(...of);
    },
  };
}

class FolderMark {
  readonly #root: string;
  readonly #path: string;
  readonly #record: MarkRecord;
  readonly #identify = shareLook(() => identify(this.#path));
  /** What the file was when its mark was last compared. */
  #seen: string | undefined;
  #looking: Promise<void> | undefined;

  constructor(root: string, record: MarkRecord) {
    this.#root = root;
    this.#path = join(root, MARK_FILE);
    this.#record = record;
  }

  /** @throws ForeignFolder */
  async check(): Promise<void> {
    const is = await this.#identify();
    if (is !== undefined && is === this.#seen) return;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Whether there is one, here or on record. @throws ForeignFolder */
  async isMade(): Promise<boolean> {
    if (this.#seen !== undefined) return true;
    return this.#guarded(
      async () =>
        (await this.#record.read()) !== null || (await readMark(this.#path)) !== undefined,
    );
  }

  #look(): Promise<void> {
    return this.#guarded(async () => {
      const written = await this.#record.read();
      // One that is there and not written down is of a try that was broken off.
      const expected =
        written ?? (await this.#record.claim((await readMark(this.#path)) ?? (await this.#make())));
      const is = await identify(this.#path);
      const found = await readMark(this.#path);
      if (found !== expected) throw foreign(found);
      this.#seen = is;
    });
  }

  async #guarded<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      if (error instanceof ForeignFolder) throw error;
      const cause = { cause: error };
      throw new ForeignFolder("the folder of volumes (VOLUMES_DIR) cannot be looked at", cause);
    }
  }

  // Whole when it appears, and of several who make one the first has it.
  async #make(): Promise<string> {
    await mkdir(this.#root, { recursive: true, mode: 0o700 });
    const draft = join(this.#root, `${MARK_FILE}.${randomUUID()}`);
    const file = await open(draft, "wx", 0o644);
    try {
      await file.writeFile(`${randomUUID()}\n`);
      await file.sync();
      await link(draft, this.#path).catch(unlessThere);
    } finally {
      await file.close();
      await unlink(draft);
    }
    await syncDirectory(this.#root);
    const mark = await readMark(this.#path);
    if (mark === undefined) throw new Error(`${this.#path} was removed while it was made`);
    return mark;
  }
}

// A sandbox's owner may read this, so it says where in words alone.
function foreign(found: string | undefined): ForeignFolder {
  const seen = found === undefined ? "bears no mark" : "bears the mark of another one";
  return new ForeignFolder(
    `VOLUMES_DIR is not the folder that this installation's volumes are in: it ${seen}; is its disk mounted?`,
  );
}

/** The mark that a folder's file holds; undefined: there is none. */
export async function readMark(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Another one whenever the file may be another, or hold something else; undefined: there is none. */
async function identify(path: string): Promise<string | undefined> {
  try {
    const { dev, ino, ctimeNs, size } = await stat(path, { bigint: true });
    return `${dev}:${ino}:${ctimeNs}:${size}`;
  } catch {
    return undefined;
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}

function unlessThere(error: unknown): void {
  if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
}

function isMissing(error: unknown): boolean {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ENOTDIR";
}
