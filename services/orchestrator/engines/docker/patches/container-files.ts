import { posix } from "node:path";
import type Docker from "dockerode";
import tar from "tar-stream";
import { type CallLimits, call } from "../call.ts";
import { kindAt } from "../container-disk.ts";
import type { Entry, Files } from "./overlay.ts";

/** What may be appended to is held in memory. */
const MOST_READ = 64 * 1024 * 1024;

/** The disk of a container that does not run. */
export function containerFiles(container: Docker.Container, limits: CallLimits): Files {
  const open = (path: string) =>
    call((options) => container.getArchive({ path, ...options }), limits);
  const known = new Map<string, Promise<Entry | undefined>>();
  const look = async (path: string): Promise<Entry | undefined> => {
    // A deep path costs one question, not one for each of its names.
    const parent = known.get(posix.dirname(path));
    if (parent && (await parent)?.kind !== "directory") return undefined;
    const kind = await kindAt(container, path, limits);
    if (kind !== "link") return kind && { kind };
    const { header } = await firstEntry(await open(path), 0);
    return { kind, target: header.linkname ?? "" };
  };
  return {
    look(path) {
      const looked = known.get(path) ?? look(path);
      known.set(path, looked);
      return looked;
    },
    async ownership(path) {
      const { header } = await firstEntry(await open(path), 0);
      return { mode: header.mode ?? 0, uid: header.uid ?? 0, gid: header.gid ?? 0 };
    },
    async read(path) {
      const { header, content } = await firstEntry(await open(path), MOST_READ);
      return (header.size ?? 0) > MOST_READ ? undefined : content;
    },
  };
}

// Of a directory the daemon would send everything that is in it.
async function firstEntry(
  archive: NodeJS.ReadableStream,
  most: number,
): Promise<{ header: tar.Headers; content: Buffer }> {
  const { promise, resolve, reject } = Promise.withResolvers<{
    header: tar.Headers;
    content: Buffer;
  }>();
  const extract = tar.extract();
  extract.on("entry", (header, body) => {
    const chunks: Buffer[] = [];
    const done = () => resolve({ header, content: Buffer.concat(chunks) });
    if (header.type !== "file" || (header.size ?? 0) > most) return done();
    body.on("data", (chunk: Buffer) => chunks.push(chunk));
    body.on("end", done);
    body.on("error", reject);
  });
  extract.on("error", reject);
  extract.on("finish", () => reject(new Error("the daemon sent an empty archive")));
  archive.on("error", reject);
  archive.pipe(extract);
  try {
    return await promise;
  } finally {
    archive.unpipe(extract);
    extract.destroy();
    if ("destroy" in archive && typeof archive.destroy === "function") archive.destroy();
  }
}
