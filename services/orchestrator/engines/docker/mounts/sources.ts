import { type FileHandle, readlink } from "node:fs/promises";
import { EngineFailure } from "../../engine.ts";
import { FileFault } from "../../volume-store.ts";
import type { DirectoryVolumes, Located } from "../../volumes/directory-volumes.ts";
import { describePlace, type Identity } from "./places.ts";
import { type PlannedMount, type VolumeMount, volumeMounts } from "./plan.ts";

/** What is to be mounted, looked up in the volumes themselves. */
export interface Sources {
  of(mount: VolumeMount): Source;
  /** The root of a volume. */
  root(volumeId: string): Source;
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
    return { kind, identity: (await describePlace(handle)).identity, at };
  };
  try {
    const roots = new Map<string, Source & { at: string }>();
    const found = new Map<VolumeMount, Source>();
    for (const mount of volumeMounts(plan)) {
      const { volumeId, path } = mount;
      const root = roots.get(volumeId) ?? (await fromVolume(mount, () => locate(volumeId, "")));
      roots.set(volumeId, { ...root, path: "" });
      const { at, ...source } = await fromVolume(mount, () => locate(volumeId, path));
      found.set(mount, { ...source, path: pathIn(at, root.at, mount) });
    }
    return { of: (mount) => known(found, mount), root: (id) => known(roots, id), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @throws EngineFailure naming the field, for what its volume refuses */
export async function fromVolume<T>(
  { field, guest }: VolumeMount,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    throw new EngineFailure(`${field}: cannot be mounted at ${guest}: ${error.message}`);
  }
}

function pathIn(at: string, root: string, { field }: VolumeMount): string {
  if (at === root) return "";
  if (at.startsWith(`${root}/`)) return at.slice(root.length);
  throw new EngineFailure(`${field}: was moved or removed while it was mounted`);
}

function known<K, V>(map: ReadonlyMap<K, V>, key: K): V {
  const value = map.get(key);
  if (value === undefined) throw new Error("a mount that was not looked up");
  return value;
}
