import { constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, readFile } from "node:fs/promises";

export type Kind = "file" | "directory";

/** Opens a place and nothing of what is in it; Node has no name for it. */
const O_PATH = 0o10000000;
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/** Why there is no such place; the message is the end of a sentence that begins with the path. */
export class PlaceFault extends Error {
  override name = "PlaceFault";
  readonly why: "missing" | "link" | "kind";

  constructor(why: PlaceFault["why"], message: string) {
    super(message);
    this.why = why;
  }
}

/** The root directory of a process, by its directory in /proc. */
export function openRoot(processFd: number): Promise<FileHandle> {
  return open(`/proc/self/fd/${processFd}/root`, O_PATH | constants.O_DIRECTORY);
}

/**
 * Opens what is at a path, name by name from a root on, so that no link is ever followed, whatever anybody changes meanwhile.
 * @param make what is to be made there, with its parents, where there is nothing
 * @returns to be closed by whoever asked
 * @throws PlaceFault
 */
export async function openPlace(root: FileHandle, path: string, make?: Kind): Promise<FileHandle> {
  const names = path.split("/").filter(Boolean);
  let at = await open(`/proc/self/fd/${root.fd}`, O_PATH | constants.O_DIRECTORY);
  for (const [i, name] of names.entries()) {
    const isLast = i === names.length - 1;
    const seen = `/${names.slice(0, i + 1).join("/")}`;
    try {
      const next = await openOrMake(at, name, seen, make && (isLast ? make : "directory"));
      if (!isLast) await mustLeadOn(next, seen);
      await at.close();
      at = next;
    } catch (error) {
      await at.close();
      throw error;
    }
  }
  return at;
}

async function openOrMake(
  parent: FileHandle,
  name: string,
  seen: string,
  make: Kind | undefined,
): Promise<FileHandle> {
  const path = `/proc/self/fd/${parent.fd}/${name}`;
  const found = await openIfThere(path);
  if (found) return await mustBeNoLink(found, seen);
  if (make === undefined)
    throw new PlaceFault("missing", `lies behind ${quote(seen)}, which is not there`);
  await makeAt(path, make);
  const made = await openIfThere(path);
  if (!made)
    throw new PlaceFault("missing", `lies behind ${quote(seen)}, which was removed meanwhile`);
  await mustBeNoLink(made, seen);
  try {
    // Whatever this program's own mask says.
    await chmod(`/proc/self/fd/${made.fd}`, make === "file" ? FILE_MODE : DIRECTORY_MODE);
    return made;
  } catch (error) {
    await made.close();
    throw error;
  }
}

async function makeAt(path: string, kind: Kind): Promise<void> {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  try {
    if (kind === "directory") await mkdir(path);
    else await (await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW)).close();
  } catch (error) {
    // Somebody else made it: who opens it sees what it is.
    if (!isCode(error, "EEXIST")) throw error;
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, O_PATH | constants.O_NOFOLLOW);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function mustBeNoLink(handle: FileHandle, seen: string): Promise<FileHandle> {
  if (!(await handle.stat()).isSymbolicLink()) return handle;
  await handle.close();
  throw new PlaceFault("link", `lies behind a link, ${quote(seen)}`);
}

async function mustLeadOn(handle: FileHandle, seen: string): Promise<void> {
  if ((await handle.stat()).isDirectory()) return;
  await handle.close();
  throw new PlaceFault("kind", `lies behind ${quote(seen)}, which is no directory`);
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

function quote(path: string): string {
  return JSON.stringify(path);
}

/** What is at a place. */
export interface Place {
  kind: Kind | "other";
  identity: Identity;
  /** Permission bits. */
  mode: number;
  /** Of the mount that it is in; see MountEntry. */
  mountId: number;
}

/**
 * Looks at what is at a path, links not followed.
 * @returns undefined where there is nothing
 * @throws PlaceFault
 */
export async function lookAt(root: FileHandle, path: string): Promise<Place | undefined> {
  const handle = await openPlace(root, path).catch((error: unknown) => {
    if (error instanceof PlaceFault && error.why === "missing") return undefined;
    throw error;
  });
  if (!handle) return undefined;
  try {
    return await describePlace(handle);
  } finally {
    await handle.close();
  }
}

export async function describePlace(handle: FileHandle): Promise<Place> {
  const stats = await handle.stat({ bigint: true });
  const kind = stats.isDirectory() ? "directory" : stats.isFile() ? "file" : "other";
  const shown = await readFile(`/proc/self/fdinfo/${handle.fd}`, "utf8");
  const mountId = Number(/^mnt_id:\s*(\d+)$/m.exec(shown)?.[1]);
  const { dev, ino } = stats;
  return { kind, identity: { dev, ino }, mode: Number(stats.mode & 0o7777n), mountId };
}

/** Two places with the same are one. */
export interface Identity {
  dev: bigint;
  ino: bigint;
}

export function isSame(a: Identity, b: Identity): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}
