import { type Allocation, EngineFailure } from "../../engine.ts";
import type { CopiedEntry, CopySource } from "./copies.ts";
import { type Change, type Files, type Names, Overlay, toPath } from "./overlay.ts";

type Patch = Allocation["patches"][number];

/** One patch, and what to call it where it cannot be applied. */
export interface Step {
  /** Such as `patches[3]`. */
  label: string;
  patch: Patch;
}

const ROOT = { uid: 0, gid: 0 };
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;
const MOST_LINKS = 40;
/** Each is a question to the daemon. */
const MOST_NAMES = 256;
/** The kernel's own limit for one name. */
const MOST_NAME_BYTES = 255;
/** Of one copy; each is held in memory, without its content. */
const MOST_COPIED = 100_000;

/** What a plan depends on beyond the disk. */
export interface Surroundings {
  /** Why a path is none that patches can change, as the end of a sentence. */
  whyOutOfReach?: (path: string) => string | undefined;
  /** Where something is mounted over the disk. */
  mountPoints?: readonly string[];
  /** Undefined: there is nothing to copy from. */
  copies?: CopySource | undefined;
}

/**
 * What a disk is to look like once these patches have been applied in this order. Links are followed within the
 * disk, whose root is theirs.
 * @throws EngineFailure naming the patch that cannot be applied
 */
export async function planPatches(
  steps: readonly Step[],
  files: Files,
  surroundings: Surroundings = {},
): Promise<Overlay> {
  const overlay = new Overlay(files);
  for (const { label, patch } of steps) {
    const planner = new Planner(overlay, files, label, surroundings);
    await planner.apply(patch);
  }
  return overlay;
}

/** Plans one patch on top of those before it. */
class Planner {
  readonly #overlay: Overlay;
  readonly #files: Files;
  readonly #label: string;
  readonly #surroundings: Surroundings;

  constructor(overlay: Overlay, files: Files, label: string, surroundings: Surroundings) {
    this.#overlay = overlay;
    this.#files = files;
    this.#label = label;
    this.#surroundings = surroundings;
  }

  async apply(patch: Patch): Promise<void> {
    switch (patch.kind) {
      case "text":
        return await this.#file(patch, Buffer.from(patch.content));
      case "file":
        return await this.#file(patch, Buffer.from(patch.content, "base64"));
      case "symlink":
        await this.#place(patch.link, patch.replace, { kind: "link", target: patch.target });
        return;
      case "mkdir":
        return await this.#makeDirectory(patch.path, patch.mode);
      case "remove":
        return await this.#remove(patch.path);
      case "append":
        return await this.#append(patch.path, Buffer.from(patch.content));
      case "copy_file":
        return await this.#copyFile(patch);
      case "copy_dir":
        return await this.#copyDirectory(patch);
    }
  }

  async #file(
    { path, mode, replace }: { path: string; mode: number | null; replace: boolean },
    content: Buffer,
  ): Promise<void> {
    const change: Change = { kind: "file", content: [content], mode: mode ?? FILE_MODE, ...ROOT };
    await this.#place(path, replace, change);
  }

  async #place(path: string, replace: boolean, change: Change): Promise<Names> {
    const at = await this.#resolve(path, false);
    await this.#makeParents(at);
    if (!replace && (await this.#overlay.look(at)))
      throw this.#failure(`${quote(path)} is there already; it needs replace: true`);
    this.#put(at, change);
    return at;
  }

  async #copyFile({ src, dst, mode, replace }: Patch & { kind: "copy_file" }): Promise<void> {
    const source = this.#source(src);
    try {
      const change = await this.#next(source, src, "file");
      await this.#place(dst, replace, { ...change, mode: mode ?? change.mode });
    } finally {
      await source.return?.();
    }
  }

  async #copyDirectory({ src, dst, replace }: Patch & { kind: "copy_dir" }): Promise<void> {
    const source = this.#source(src);
    try {
      const at = await this.#place(dst, replace, await this.#next(source, src, "directory"));
      await this.#copyBelow(at, source, src);
    } finally {
      await source.return?.();
    }
  }

  async #copyBelow(at: Names, source: AsyncIterator<CopiedEntry>, src: string): Promise<void> {
    for (let copied = 1; ; copied += 1) {
      const { done, value } = await source.next();
      if (done) return;
      if (copied > MOST_COPIED)
        throw this.#failure(`${quote(src)} holds more than ${MOST_COPIED} files`, ".src");
      this.#put(this.#mustReach([...at, ...value.names]), value.change);
    }
  }

  #source(src: string): AsyncIterator<CopiedEntry> {
    const { copies } = this.#surroundings;
    if (!copies) throw this.#failure("there is no host volume to copy from", ".src");
    return copies.walk(src, `${this.#label}.src`)[Symbol.asyncIterator]();
  }

  /** What is at a source itself. */
  async #next<K extends "file" | "directory">(
    source: AsyncIterator<CopiedEntry>,
    src: string,
    kind: K,
  ): Promise<Change & { kind: K }> {
    const { value } = await source.next();
    const change: Change | undefined = value?.change;
    if (isOf(change, kind)) return change;
    throw this.#failure(`${quote(src)} of the host volume is no ${kind}`, ".src");
  }

  // One that is there keeps its mode, unless another is asked for.
  async #makeDirectory(path: string, mode: number | null): Promise<void> {
    const at = await this.#resolve(path, true);
    const found = await this.#overlay.look(at);
    if (found && found.kind !== "directory")
      throw this.#failure(`${quote(path)} is there already, and is no directory`);
    if (!found) {
      await this.#makeParents(at);
      this.#overlay.put(at, newDirectory(mode));
    } else if (mode !== null) {
      this.#overlay.alter(at, { ...(await this.#directoryAt(at)), mode });
    }
  }

  async #directoryAt(at: Names): Promise<Change & { kind: "directory" }> {
    const known = this.#overlay.changeAt(at);
    if (known?.kind === "directory") return known;
    return { kind: "directory", fresh: false, ...(await this.#files.ownership(toPath(at))) };
  }

  async #remove(path: string): Promise<void> {
    const at = await this.#resolve(path, false);
    if (await this.#overlay.look(at)) this.#overlay.put(at, { kind: "absent", by: this.#label });
  }

  async #append(path: string, content: Buffer): Promise<void> {
    const at = await this.#resolve(path, true);
    const found = await this.#overlay.look(at);
    if (!found) throw this.#failure(`there is no ${quote(path)} to append to`);
    if (found.kind !== "file") throw this.#failure(`${quote(path)} is no file to append to`);
    const known = this.#overlay.changeAt(at);
    const file = known?.kind === "file" ? known : await this.#fileAt(at);
    this.#put(at, { ...file, content: [...file.content, content] });
  }

  async #fileAt(at: Names): Promise<Change & { kind: "file" }> {
    const path = toPath(at);
    const content = await this.#files.read(path);
    if (!content) throw this.#failure(`${quote(path)} is too large to append to`);
    return { kind: "file", content: [content], ...(await this.#files.ownership(path)) };
  }

  async #makeParents(at: Names): Promise<void> {
    for (let depth = 1; depth < at.length; depth += 1) {
      const parent = at.slice(0, depth);
      const found = await this.#overlay.look(parent);
      if (!found) this.#overlay.put(parent, newDirectory(null));
      else if (found.kind !== "directory")
        throw this.#failure(`${quote(toPath(parent))} is no directory`);
    }
  }

  /** Where a path leads, links followed as in a disk of its own; the last name only where that is asked for. */
  async #resolve(path: string, followLast: boolean): Promise<Names> {
    const pending = path.split("/");
    let at: string[] = [];
    for (let links = 0; pending.length > 0; ) {
      const name = pending.shift() ?? "";
      if (name === "..") at.pop();
      if (name === "" || name === "." || name === "..") continue;
      if (Buffer.byteLength(name) > MOST_NAME_BYTES)
        throw this.#failure("its path has a name that is too long");
      const isLast = pending.every((rest) => rest === "");
      const found = isLast && !followLast ? undefined : await this.#overlay.look([...at, name]);
      if (found?.kind !== "link") {
        at.push(name);
        if (at.length > MOST_NAMES) throw this.#failure(TOO_DEEP);
        continue;
      }
      links += 1;
      if (links > MOST_LINKS) throw this.#failure(`${quote(path)} leads through too many links`);
      if (found.target.startsWith("/")) at = [];
      pending.unshift(...found.target.split("/"));
    }
    if (at.length === 0) throw this.#failure(`${quote(path)} leads to the root`);
    return this.#mustReach(at, path);
  }

  #put(at: Names, change: Change): void {
    const path = toPath(at);
    if (change.kind !== "directory" && this.#surroundings.mountPoints?.includes(path))
      throw this.#failure(`${quote(path)} would be hidden by the mount there`);
    this.#overlay.put(at, change);
  }

  #mustReach(at: Names, path = toPath(at)): Names {
    if (at.length > MOST_NAMES) throw this.#failure(TOO_DEEP);
    const why = this.#surroundings.whyOutOfReach?.(toPath(at));
    if (why !== undefined) throw this.#failure(`${quote(path)} ${why}`);
    return at;
  }

  #failure(why: string, field = ""): EngineFailure {
    return new EngineFailure(`${this.#label}${field}: ${why}`);
  }
}

const TOO_DEEP = "its path is too deep";

function isOf<K extends Change["kind"]>(
  change: Change | undefined,
  kind: K,
): change is Change & { kind: K } {
  return change?.kind === kind;
}

function newDirectory(mode: number | null): Change {
  return { kind: "directory", fresh: true, mode: mode ?? DIRECTORY_MODE, ...ROOT };
}

function quote(path: string): string {
  return JSON.stringify(path);
}
