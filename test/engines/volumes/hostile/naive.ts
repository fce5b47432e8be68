import { constants, type PathLike } from "node:fs";
import { open, realpath, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  FileFault,
  type VolumeFiles,
} from "../../../../services/orchestrator/engines/volume-store.ts";
import { collect } from "../support.ts";

/** What one would write at first: the path is checked as thoroughly as can be, and then used. */
export function createNaiveFiles(
  inside: string,
): Pick<VolumeFiles, "read" | "write" | "stat" | "remove"> {
  const checked = async (path: string): Promise<string> => {
    const wanted = join(inside, path);
    const parent = await realpath(dirname(wanted)).catch(refuse);
    const real = await realpath(wanted).catch(() => join(parent, basename(wanted)));
    if (!`${real}/`.startsWith(`${inside}/`))
      throw new FileFault("outside", "it leaves the volume");
    return real;
  };
  const infoOf = async (path: PathLike) => {
    const { size } = await stat(path, { bigint: true }).catch(refuse);
    return { path: "/", kind: "file" as const, size, mode: 0, uid: 0, gid: 0, ...TIMES };
  };
  return {
    async read(_key, path) {
      const real = await checked(path);
      const info = await infoOf(real);
      const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK).catch(refuse);
      const content = await file
        .readFile()
        .catch(refuse)
        .finally(() => file.close());
      const bytes = [content];
      const parts = { offset: 0n, length: info.size, close: async () => {} };
      return { info, version: "", ...parts, content: toAsync(bytes) };
    },
    async write(_key, path, content) {
      const real = await checked(path);
      await writeFile(real, await collect(content)).catch(refuse);
      return { ...(await infoOf(real)), size: 7n };
    },
    async stat(_key, path) {
      return infoOf(await checked(path));
    },
    async remove(_key, path) {
      await rm(await checked(path), { recursive: true }).catch(refuse);
    },
  };
}

const TIMES = { accessedAt: new Date(0), modifiedAt: new Date(0), createdAt: null };

async function* toAsync<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

function refuse(error: unknown): never {
  throw new FileFault("missing", String(error));
}
