import type {
  VolumeFiles,
  VolumeKey,
} from "../../../../services/orchestrator/engines/volume-store.ts";
import type { DirectoryVolumes } from "../../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { admitAll, collect, contentOf, never } from "../support.ts";
import { CANARY } from "./world.ts";

/** What a client asks for; answers with what it should never have seen. */
export type Act = (path: string, other: string) => Promise<string | undefined>;

export const PATHS = [
  "directory/file",
  "directory/sub/file",
  "directory/sub",
  "directory/new/file",
  "directory",
  "tree/directory/file",
  "tree/directory/sub/file",
  "tree/directory",
  "tree/new",
  "tree",
  "link/file",
  "link/sub/file",
  "link/sub",
  "link/sub/empty",
  "link/new/file",
  "link",
  "file",
  "moving/a/b/c/file",
  "moving/a/b/c/../../b/c/file",
  "moving/a/b/c/../../../file",
  "moving/a/b/c/../../../../file",
  "moving",
];

const isCanary = (size: bigint | number) => Number(size) === CANARY.length;

export function fileActs(
  files: Pick<VolumeFiles, "read" | "write" | "stat" | "remove">,
  key: VolumeKey,
): Record<string, Act> {
  return {
    async read(path) {
      const file = await files.read(key, path, { offset: 0n, length: 1000n });
      const content = await collect(file.content);
      return content.includes("OUTSIDE") || isCanary(file.info.size) ? "content" : undefined;
    },
    async write(path) {
      const { size } = await files.write(key, path, contentOf(["writ", "ten"]), admitAll);
      return size === 7n ? undefined : "another file's size";
    },
    async stat(path) {
      return isCanary((await files.stat(key, path)).size) ? "a file's size" : undefined;
    },
    async remove(path) {
      await files.remove(key, path, true, never);
      return undefined;
    },
  };
}

export function allActs(volumes: DirectoryVolumes, key: VolumeKey): Record<string, Act> {
  const { files } = volumes;
  return {
    ...fileActs(files, key),
    async list(path) {
      for await (const batch of files.list(key, path, never))
        if (batch.some(({ size }) => isCanary(size))) return "a file's size in a list";
      return undefined;
    },
    async makeDirectory(path) {
      await files.makeDirectory(key, path);
      return undefined;
    },
    async copy(path, other) {
      await files.copy(key, path, other, admitAll, never);
      return undefined;
    },
    async rename(path, other) {
      await files.rename(key, path, other);
      return undefined;
    },
    async removeOne(path) {
      await files.remove(key, path, false, never);
      return undefined;
    },
    async measure() {
      const { bytes } = await volumes.measure(key, never);
      return bytes >= CANARY.length ? `${bytes} bytes` : undefined;
    },
    async locate(path) {
      const { handle } = await volumes.locate(key, path);
      await using _closed = handle;
      return isCanary((await handle.stat()).size) ? "a place" : undefined;
    },
    async walk(path) {
      for await (const { entry } of volumes.walk(key, path, never))
        if (entry.kind === "file" && isCanary(entry.size)) return "a file's size in a walk";
        else if (entry.kind === "file" && (await collect(entry.content())).includes("OUTSIDE"))
          return "content in a walk";
      return undefined;
    },
  };
}
