import { type Allocation, EngineUnavailable } from "../../engine.ts";
import { FileFault } from "../../volume-store.ts";
import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import type { Disk, DiskFile } from "../find-program.ts";
import { isWithin, type PlannedMount, planMounts, type VolumeMount } from "./plan.ts";

const EXECUTABLE = 0o111;

/**
 * A disk with what is mounted over it once the container runs: nothing in a tmpfs, and what volumes hold now.
 * @param tmpfs those that Docker mounts
 */
export function mountedDisk(
  disk: Disk,
  tmpfs: readonly string[],
  allocation: Allocation,
  volumes: DirectoryVolumes | undefined,
): Disk {
  const plan = planMounts(allocation).toReversed();
  const mountAt = (path: string) => plan.find(({ guest }) => isWithin(path, guest));
  const isHidden = (path: string) => tmpfs.some((top) => path.startsWith(`${top}/`));
  return {
    async stat(path) {
      const own = mountAt(path) ? undefined : await disk.stat(path);
      const at = own?.path ?? path;
      const mount = mountAt(at);
      if (mount) return volumes && (await statIn(volumes, allocation.orgId, mount, at));
      return own && !isHidden(own.path) ? own : undefined;
    },
    // What a script in a volume asks for is not looked at: it may be another by the time that it is run.
    interpreter: async (path) => (mountAt(path) ? undefined : await disk.interpreter(path)),
  };
}

async function statIn(
  volumes: DirectoryVolumes,
  orgId: string,
  mount: PlannedMount,
  path: string,
): Promise<DiskFile | undefined> {
  if (mount.kind === "tmpfs") return undefined;
  // What is in an image shows once the kernel has it mounted.
  if (mount.kind === "disk") return { path, kind: "file", executable: true };
  try {
    const volume = { orgId, volumeId: mount.volumeId };
    const { kind, mode } = await volumes.files.stat(volume, pathIn(mount, path));
    return { path, kind, executable: (mode & EXECUTABLE) !== 0 };
  } catch (error) {
    if (error instanceof EngineUnavailable || !(error instanceof FileFault)) throw error;
    // A link out of the volume leads to somewhere on the sandbox's disk, as that of a virtual environment does.
    return error.why === "outside" ? { path, kind: "file", executable: true } : undefined;
  }
}

function pathIn({ guest, path }: VolumeMount, of: string): string {
  return `${path}${of.slice(guest.length)}`;
}
