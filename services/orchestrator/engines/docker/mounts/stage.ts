import { posix } from "node:path";
import type { ContainerCreateOptions } from "dockerode";

/**
 * Where Docker mounts the volumes of a sandbox, each whole; only there, and only until the gate is opened. By then what the
 * sandbox is to see of them is mounted from here, and this is empty. Under /dev, which is made anew at each start.
 */
export const STAGE = "/dev/.sandgate-volumes";

/** Where a volume is staged. */
export function stageOf(volumeId: string): string {
  return posix.join(STAGE, volumeId);
}

/** A volume on its stage. @param directory its own, no part of which can be changed from inside a sandbox. Pure. */
export function stagedMount(volumeId: string, directory: string) {
  return {
    Type: "bind" as const,
    Source: directory,
    Target: stageOf(volumeId),
    ReadOnly: false,
    BindOptions: { Propagation: "private" as const, NonRecursive: true },
  };
}

/** A container with volumes on its stage. @param directories by volume id. Pure. */
export function staged(
  options: ContainerCreateOptions,
  directories: ReadonlyMap<string, string>,
): ContainerCreateOptions {
  const { HostConfig } = options;
  const mounts = [...directories].map(([volumeId, path]) => stagedMount(volumeId, path));
  return {
    ...options,
    HostConfig: { ...HostConfig, Mounts: [...(HostConfig?.Mounts ?? []), ...mounts] },
  };
}
