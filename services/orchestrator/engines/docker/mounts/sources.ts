import { type FileHandle, readlink } from "node:fs/promises";
import { resolve } from "node:path";
import { EngineFailure } from "../../engine.ts";
import { FileFault } from "../../volume-store.ts";
import type { DirectoryVolumes, Located } from "../../volumes/directory-volumes.ts";
import { describePlace, type Identity } from "./places.ts";
import { type DiskMount, type PlannedMount, type SourcedMount, sourcedMounts } from "./plan.ts";

/** What is to be mounted, looked up in the volumes themselves. */
export interface Sources {
  of(mount: SourcedMount): Source;
  /** The root of a volume. */
  root(volumeId: string): Source;
  /** The folder that all volumes lie in, without links. */
  home(mount: DiskMount): string;
  /** See DirectoryVolumes.withSecondName. */
  withName<T>(mount: DiskMount, act: (path: string) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface Source {
  kind: Located["kind"];
  identity: Identity;
  /** From the volume's root and without links, as it was a moment ago: empty, or with a leading `/`. */
  path: string;
}

/**
 * Looks up what these mounts name. Until it is closed nothing else gets the same identities.
 * @throws EngineFailure naming the field of what is not there
 */
export async function locateSources(
  volumes: DirectoryVolumes,
  orgId: string,
  plan: readonly PlannedMount[],
): Promise<Sources> {
  const held: FileHandle[] = [];
  const close = async () => {
    await Promise.all(held.map((handle) => handle.close()));
  };
  const locate = async (volumeId: string, path: string) => {
    const { handle, kind } = await volumes.locate({ orgId, volumeId }, path);
    held.push(handle);
    const at = await readlink(`/proc/self/fd/${handle.fd}`);
    return { kind, identity: (await describePlace(handle)).identity, at, handle };
  };
  try {
    const roots = new Map<string, Source & { at: string }>();
    const found = new Map<SourcedMount, Source & { handle: FileHandle }>();
    for (const mount of sourcedMounts(plan)) {
      const { volumeId, path } = mount;
      const root = roots.get(volumeId) ?? (await fromVolume(mount, () => locate(volumeId, "")));
      roots.set(volumeId, { ...root, path: "" });
      const { at, ...source } = await fromVolume(mount, () => locate(volumeId, path));
      if (mount.kind === "disk" && source.kind !== "file")
        throw new EngineFailure(`${mount.field}: ${JSON.stringify(path)} is no file`);
      found.set(mount, { ...source, path: pathIn(at, root.at, mount) });
    }
    return {
      of: (mount) => known(found, mount),
      root: (id) => known(roots, id),
      // <home>/<organization>/<volume>/files
      home: ({ volumeId }) => resolve(known(roots, volumeId).at, "../../.."),
      withName: (mount, act) => {
        const { volumeId } = mount;
        const ask = () =>
          volumes.withSecondName({ orgId, volumeId }, known(found, mount).handle, act);
        return fromVolume(mount, ask);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws EngineFailure naming the field, for what its volume refuses */
export async function fromVolume<T>(
  { field, guest }: SourcedMount,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    throw new EngineFailure(`${field}: cannot be mounted at ${guest}: ${error.message}`);
  }
}

function pathIn(at: string, root: string, { field }: SourcedMount): string {
  if (at === root) return "";
  if (at.startsWith(`${root}/`)) return at.slice(root.length);
  throw new EngineFailure(`${field}: was moved or removed while it was mounted`);
}

function known<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error("a mount that was not looked up");
  return value;
}
