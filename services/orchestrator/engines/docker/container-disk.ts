import { posix } from "node:path";
import type Docker from "dockerode";
import { type CallLimits, call, isStatus } from "./call.ts";
import type { Disk, DiskFile } from "./find-program.ts";
import { tarHead } from "./tar-head.ts";

/** The daemon's answer to a HEAD on a container's archive; the mode's bits are Go's. */
interface PathStat {
  size: number;
  mode: number;
  linkTarget: string;
}

const GO_DIRECTORY = 0x8000_0000;
const GO_SYMLINK = 0x0800_0000;
// Directory, link, device, pipe, socket and whatever else is no plain file.
const GO_TYPES = 0x8f28_0000;
const EXECUTABLE = 0o111;

export function containerDisk(container: Docker.Container, limits: CallLimits): Disk {
  return {
    stat: (path) => statPath(container, path, limits),
    async interpreter(path) {
      const stream = await call((options) => container.getArchive({ path, ...options }), limits);
      const head = (await tarHead(stream)).toString("latin1");
      return /^#![ \t]*([^\s\0]+)/.exec(head)?.[1];
    },
  };
}

/** What is at a path whose parents are no links; a link itself is not followed. */
export async function kindAt(
  container: Docker.Container,
  path: string,
  limits: CallLimits,
): Promise<"directory" | "file" | "link" | "other" | undefined> {
  const stat = await rawStat(container, path, limits);
  if (!stat) return undefined;
  return stat.mode & GO_SYMLINK ? "link" : describe(path, stat).kind;
}

/** Bytes of what is at a path; undefined: there is nothing. */
export async function sizeAt(
  container: Docker.Container,
  path: string,
  limits: CallLimits,
): Promise<number | undefined> {
  return (await rawStat(container, path, limits))?.size;
}

async function statPath(
  container: Docker.Container,
  path: string,
  limits: CallLimits,
): Promise<DiskFile | undefined> {
  const stat = await rawStat(container, path, limits);
  if (!stat) return undefined;
  // The target is where the whole chain of links ends, but it may not be there.
  if (stat.mode & GO_SYMLINK) {
    const target = posix.resolve("/", stat.linkTarget);
    const end = await rawStat(container, target, limits);
    return end && !(end.mode & GO_SYMLINK) ? describe(target, end) : undefined;
  }
  return describe(path, stat);
}

function describe(path: string, { mode }: PathStat): DiskFile {
  const kind = mode & GO_DIRECTORY ? "directory" : mode & GO_TYPES ? "other" : "file";
  return { path, kind, executable: (mode & EXECUTABLE) !== 0 };
}

async function rawStat(
  container: Docker.Container,
  path: string,
  limits: CallLimits,
): Promise<PathStat | undefined> {
  const request = (options: { abortSignal: AbortSignal }) =>
    container.infoArchive({ path, ...options });
  try {
    const answer = await call(request, limits);
    answer.resume();
    const header = String(answer.headers["x-docker-container-path-stat"]);
    return JSON.parse(Buffer.from(header, "base64").toString());
  } catch (error) {
    if (isStatus(error, 404) || isStatus(error, 400)) return undefined;
    // A path through something that is no directory is an internal error to some daemons.
    if (!isStatus(error, 500) || path === "/") throw error;
    const parent = await rawStat(container, posix.dirname(path), limits);
    if (parent && parent.mode & (GO_DIRECTORY | GO_SYMLINK)) throw error;
    return undefined;
  }
}
