import type { FieldFault } from "../../../runtime/errors.ts";
import type { Feature } from "./requirements.ts";
import type { Mount, Patch, SandboxSpec } from "./spec.ts";

/** A sandbox that requires none of these takes nothing from a volume. */
export const VOLUME_FEATURES: readonly Feature[] = [
  "mounts.bind",
  "mounts.disk_image",
  "mounts.named",
  "patches.copy",
];

/** The host volume, which has no name, among the volumes that a sandbox takes something from. */
export const HOST_VOLUME = "";

/** The volumes that mounts and patches name, each once, without order. Pure. */
export function volumeNames(mounts: readonly Mount[], patches: readonly Patch[]): string[] {
  const names = mounts.flatMap(nameOf);
  if (patches.some(({ kind }) => kind === "copy_file" || kind === "copy_dir"))
    names.push(HOST_VOLUME);
  return [...new Set(names)];
}

function nameOf(mount: Mount): string[] {
  if (mount.type === "named") return [mount.name];
  return mount.type === "tmpfs" ? [] : [HOST_VOLUME];
}

/** A fault for each mount of a volume that is not among `there`; `why` goes on after its name. Pure. */
export function missingVolumes(
  { mounts }: Pick<SandboxSpec, "mounts">,
  there: readonly string[],
  why: string,
): FieldFault[] {
  return mounts.flatMap((mount, i) =>
    mount.type === "named" && !there.includes(mount.name)
      ? [{ field: `mounts[${i}].name`, message: `volume '${mount.name}' ${why}` }]
      : [],
  );
}
