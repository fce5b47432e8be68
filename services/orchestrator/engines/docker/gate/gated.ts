import { posix } from "node:path";
import type { ContainerCreateOptions } from "dockerode";
import { EngineFailure, type EngineSpec } from "../../engine.ts";
import type { DockerContext } from "../context.ts";
import { hasDiskImages, hasVolumes, isWithin } from "../mounts/plan.ts";
import { STAGE } from "../mounts/stage.ts";
import { gateVolumeName, LABELS } from "../names.ts";

/**
 * Where the gate lies in a container: in a file system that is made anew at each start, so that nothing that a
 * sandbox ever wrote to its disk can stand in its place.
 */
export const GATE_DIRECTORY = "/dev/.sandgate";
export const GATE = `${GATE_DIRECTORY}/gate`;
/** The daemon's init; the one that the daemon itself puts at /sbin would be found through the sandbox's disk. */
export const GATE_INIT = `${GATE_DIRECTORY}/init`;

/**
 * The same container with its first process held at the gate, which then becomes what it would have been. Pure.
 * @throws EngineFailure where that would have to be searched for, or something is to be mounted in its place
 */
export function gated(
  options: ContainerCreateOptions,
  installationId: string,
): ContainerCreateOptions {
  const { HostConfig } = options;
  const program = [options.Entrypoint ?? []].flat();
  const init = HostConfig?.Init ? [GATE_INIT, "--"] : [];
  const [first = ""] = [...init, ...program];
  if (!first.startsWith("/"))
    throw new EngineFailure(`command ${JSON.stringify(first)} needs an absolute path here`);
  for (const guest of Object.keys(HostConfig?.Tmpfs ?? {}))
    if ([GATE_DIRECTORY, STAGE].some((taken) => isWithin(posix.normalize(guest), taken)))
      throw new EngineFailure(`nothing can be mounted on ${guest}: it is taken`);
  return {
    ...options,
    Entrypoint: [GATE, ...init, ...program],
    HostConfig: {
      ...HostConfig,
      Init: false,
      Mounts: [...(HostConfig?.Mounts ?? []), gateMount(installationId)],
    },
  };
}

/** The volume that holds the gate, read-only in its place. Pure. */
export function gateMount(installationId: string) {
  return {
    Type: "volume" as const,
    Source: gateVolumeName(installationId),
    Target: GATE_DIRECTORY,
    ReadOnly: true,
    VolumeOptions: {
      // Otherwise an image could fill an empty volume, and so bring a gate of its own for everybody.
      NoCopy: true,
      Labels: { [LABELS.installation]: installationId },
      DriverConfig: { Name: "local", Options: {} },
    },
  };
}

/** Whether this sandbox is to be held until the rules of its network stand, and its volumes are mounted. */
export function needsGate(ctx: DockerContext, spec: EngineSpec): boolean {
  return needsRules(ctx, spec) || hasVolumes(spec);
}

/** Whether there are rules for its network. */
export function needsRules({ policies }: DockerContext, { network }: EngineSpec): boolean {
  return policies.demanded && network.enabled;
}

/**
 * The gate, for a start of this sandbox.
 * @throws EngineFailure where what it is held for cannot be done, EngineUnavailable where Docker does not answer
 */
export async function gateOf(ctx: DockerContext, spec: EngineSpec): Promise<Buffer> {
  if (!hasVolumes(spec)) return await ctx.policies.gate();
  if (needsRules(ctx, spec)) await ctx.policies.gate();
  return await ctx.mounting.gate(hasDiskImages(spec));
}

export function isGated(entrypoint: readonly string[]): boolean {
  return entrypoint[0] === GATE;
}

/** What a container runs behind its gate and the init there; the same where it has no gate. Pure. */
export function ungated(entrypoint: readonly string[]): string[] {
  if (!isGated(entrypoint)) return [...entrypoint];
  return entrypoint.slice(entrypoint[1] === GATE_INIT ? 3 : 1);
}
