import { stat } from "node:fs/promises";
import { type Allocation, EngineFailure } from "../../engine.ts";
import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import { type DockerContext, sandboxLog } from "../context.ts";
import type { HostProcess } from "../gate/held-process.ts";
import type { Machine } from "../machines.ts";
import { ANOTHER_FOLDER, isStaged, makeMounts } from "./make-mounts.ts";
import { type Identity, isSame } from "./places.ts";
import { hasVolumes, isWithin, planMounts, sourcedMounts, volumesOf } from "./plan.ts";
import { fromVolume, locateSources } from "./sources.ts";
import { STAGE } from "./stage.ts";

/**
 * The directories of the volumes that a sandbox mounts, made where they are not there; by volume id.
 * @throws EngineFailure for mounts that cannot be
 */
export async function volumeDirectories(
  ctx: DockerContext,
  allocation: Allocation,
): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const { orgId } = allocation;
  for (const mount of sourcedMounts(planMounts(allocation))) {
    const { volumeId } = mount;
    const find = () => volumesIn(ctx).directory({ orgId, volumeId });
    if (!found.has(volumeId)) found.set(volumeId, await fromVolume(mount, find));
  }
  return found;
}

/**
 * Makes sure before a start that what it mounts is there.
 * @throws EngineFailure naming what is not
 */
export async function checkSources(
  ctx: DockerContext,
  { container }: Machine,
  allocation: Allocation,
): Promise<void> {
  const plan = planMounts(allocation);
  if (plan.length === 0) return;
  const sources = await locateSources(volumesIn(ctx), allocation.orgId, plan);
  try {
    for (const { Source, Destination } of container.Mounts)
      if (isWithin(Destination, STAGE))
        await mustBe(Source, sources.root(Destination.slice(STAGE.length + 1)).identity);
  } finally {
    await sources.close();
  }
  const { sandboxId, generation, spec, volumes } = allocation;
  const log = sandboxLog(ctx, sandboxId, spec.runtime.logLevel);
  const mounted = volumesOf(plan);
  for (const { volumeId, full } of Object.values(volumes))
    if (full && mounted.includes(volumeId))
      log.warn({ generation, volume_id: volumeId }, "a volume is full, so it is mounted read-only");
}

// Docker looks for it where it was when the container was made.
async function mustBe(directory: string, identity: Identity): Promise<void> {
  const found = await stat(directory, { bigint: true }).catch(() => undefined);
  if (!found || !isSame(found, identity)) throw new EngineFailure(ANOTHER_FOLDER);
}

/**
 * Makes the mounts of a machine that is held at its gate.
 * @throws EngineFailure, or Error: the machine is not to run then
 */
export async function mountVolumes(
  ctx: DockerContext,
  { container }: Machine,
  first: HostProcess,
  allocation: Allocation,
): Promise<void> {
  const plan = planMounts(allocation);
  if (plan.length === 0) return;
  const sources = await locateSources(volumesIn(ctx), allocation.orgId, plan);
  try {
    await makeMounts(first, { plan, sources }, container.Config.WorkingDir || "/");
  } finally {
    await sources.close();
  }
}

/**
 * For a machine that is past its gate.
 * @throws Error where somebody let it through without its mounts
 */
export async function mustHaveMounts(first: HostProcess, { spec }: Allocation): Promise<void> {
  if (hasVolumes(spec) && (await isStaged(first)))
    throw new Error("somebody let the machine through without its volumes");
}

function volumesIn({ volumes }: DockerContext): DirectoryVolumes {
  if (!volumes)
    throw new EngineFailure("volumes cannot be mounted here: there is no folder for them");
  return volumes;
}
