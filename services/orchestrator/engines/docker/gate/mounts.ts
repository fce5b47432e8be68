import { EngineFailure } from "../../engine.ts";
import { kindAt } from "../container-disk.ts";
import type { DockerContext } from "../context.ts";
import type { Machine } from "../machines.ts";
import { isOfKernel, isWithin } from "../mounts/plan.ts";
import { STAGE } from "../mounts/stage.ts";
import { GATE_DIRECTORY } from "./gated.ts";

/**
 * Refuses the volumes of an image that have no place on a sandbox's disk. Pure.
 * @throws EngineFailure
 */
export function refuseKernelVolumes({ container }: Machine): void {
  for (const path of volumesOf(container))
    if (path === "/" || isOfKernel(path)) throw failure(path, "is not on the sandbox's disk");
}

/**
 * Refuses those that a link could lead over the gate. The runtime follows the links of the disk to where it mounts
 * them, in an order of its own, and what is in them the image and the sandbox have written.
 * @throws EngineFailure
 */
export async function refuseLinkedVolumes(
  { docker }: DockerContext,
  { containerId, container }: Machine,
  signal: AbortSignal,
): Promise<void> {
  for (const volume of volumesOf(container)) {
    const names = volume.split("/").slice(1);
    for (let depth = 1; depth <= names.length; depth += 1) {
      const path = `/${names.slice(0, depth).join("/")}`;
      if ((await kindAt(docker.getContainer(containerId), path, { signal })) === "link")
        throw failure(volume, `lies behind a link, ${path}`);
    }
  }
}

function volumesOf({ Mounts }: Machine["container"]): string[] {
  const isOurs = (path: string) => path === GATE_DIRECTORY || isWithin(path, STAGE);
  return Mounts.map(({ Destination }) => Destination).filter((path) => !isOurs(path));
}

function failure(volume: string, why: string): EngineFailure {
  return new EngineFailure(`the image's volume at ${volume} ${why}`);
}
