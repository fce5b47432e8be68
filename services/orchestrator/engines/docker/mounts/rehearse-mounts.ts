import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import { holdOne, type Rehearsal } from "../gate/held-container.ts";
import { makeMounts } from "./make-mounts.ts";
import type { MountFlags, PlannedMount } from "./plan.ts";
import { locateSources } from "./sources.ts";
import { stagedMount } from "./stage.ts";

/** A volume of nobody's, which stays: others may be rehearsing too. */
export const NOBODY = "00000000-0000-0000-0000-000000000000";
export const PROBE = { orgId: NOBODY, volumeId: NOBODY };
const INSIDE = "inside";
const ALL: MountFlags = { readonly: true, noexec: true, nosuid: true, nodev: true };
const NONE: MountFlags = { readonly: false, noexec: false, nosuid: false, nodev: false };

/** One inside the other, so that a mount point has to be made in a volume that is then read-only. */
const PLAN: readonly PlannedMount[] = [
  { ...mountAt("mounts[0]", "/probe", ""), flags: ALL },
  { ...mountAt("mounts[1]", "/probe/point", INSIDE), flags: NONE },
  { kind: "tmpfs", label: "mounts[2]", guest: "/probe/point/t", flags: ALL, sizeMib: 1 },
];

/**
 * Does once, with a container that has no network, all that a start with volumes takes.
 * @throws Error saying what does not work
 */
export async function rehearseMounts(
  volumes: DirectoryVolumes,
  rehearsal: Rehearsal,
): Promise<void> {
  const directory = await volumes.directory(PROBE);
  await volumes.files.makeDirectory(PROBE, INSIDE);
  await holdOne(rehearsal, [stagedMount(PROBE.volumeId, directory)], async ({ held }) => {
    const sources = await locateSources(volumes, PROBE.orgId, PLAN);
    try {
      await makeMounts(held, { plan: PLAN, sources }, "/");
    } finally {
      await sources.close();
    }
  });
}

function mountAt(label: string, guest: string, path: string) {
  return { kind: "volume" as const, label, guest, field: label, volumeId: NOBODY, path };
}
