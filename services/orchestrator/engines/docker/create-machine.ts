import type { ContainerCreateOptions } from "dockerode";
import { type Allocation, EngineFailure, EngineUnavailable } from "../engine.ts";
import { call, DockerError, isStatus } from "./call.ts";
import { containerOptions, type Launch } from "./container-options.ts";
import { type DockerContext, sandboxLog } from "./context.ts";
import { gated, needsGate } from "./gate/gated.ts";
import { type InitProgram, initLaunch, likelyInit } from "./init.ts";
import { findMachine, inspectMachine, type Machine } from "./machines.ts";
import { volumeDirectories } from "./mounts/machine-mounts.ts";
import { staged } from "./mounts/stage.ts";
import { formatName } from "./names.ts";
import { prepareMachine } from "./patches/prepare-machine.ts";
import { needsPreparation, searchPath } from "./patches/steps.ts";
import { startFault } from "./start-faults.ts";
import { supervisor } from "./supervisor.ts";
import { directCommand, type ImageConfig, turnedOutEmpty, workloadOf } from "./workload.ts";

/** How a container is to run an image. @param hasInit the daemon has an init of its own */
type Launcher = (image: ImageConfig, hasInit: boolean) => Launch;

/**
 * Makes the sandbox's container with its image: under a supervisor, or with the image's init as PID 1. Its disk is as
 * the first start is to find it.
 * @param init what was found on the image's disk; without it the likeliest is taken
 * @throws EngineFailure where image or spec cannot be used
 */
export async function createMachine(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
  init?: InitProgram,
): Promise<Machine> {
  const { spec } = allocation;
  return await create(ctx, allocation, signal, (image, hasInit) => {
    const workload = workloadOf(spec.runtime, image);
    if (spec.init) return initLaunch(allocation, image, init ?? likelyInit(spec.init), workload);
    const hasWorkload = workload.length > 0;
    const isEmpty = turnedOutEmpty(spec.runtime, workload);
    return { ...supervisor(hasInit), cmd: workload, init: hasInit, hasWorkload, isEmpty };
  });
}

/**
 * The same for an image without a shell: its command is the machine, and ends with it.
 * @throws EngineFailure where there is no command either
 */
export async function createDirectMachine(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  return await create(ctx, allocation, signal, (image, init) => {
    const entrypoint = directCommand(allocation.spec.runtime, image);
    if (entrypoint.length === 0)
      throw new EngineFailure("the image has neither /bin/sh nor a command: nothing can run");
    return { entrypoint, cmd: [], env: {}, init, hasWorkload: false, isEmpty: false };
  });
}

async function create(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
  launchWith: Launcher,
): Promise<Machine> {
  const log = sandboxLog(ctx, allocation.sandboxId, allocation.spec.runtime.logLevel);
  const image = await ctx.images.ensure(allocation, signal);
  log.debug({ image: allocation.spec.image, id: image.id }, image.pulled ? PULLED : FOUND);
  const { hasInit } = await ctx.host();
  const launch = withSearchPath(allocation, image, launchWith(image, hasInit));
  const { installationId, runtime } = ctx;
  const directories = await volumeDirectories(ctx, allocation);
  const bare = containerOptions(allocation, image, installationId, launch, runtime);
  const plain = staged(bare, directories);
  const options = needsGate(ctx, allocation.spec) ? gated(plain, ctx.installationId) : plain;
  const name = formatName({ ...allocation, after: null });
  const machine = await createOrFind(ctx, allocation, { ...options, name }, signal);
  if (!machine) throw new EngineUnavailable("the machine vanished while it was made");
  log.debug({ container: machine.containerId }, "the container is made");
  await prepareMachine(ctx, machine, allocation, signal);
  if (needsPreparation(allocation))
    log.debug({ patches: allocation.patches.length }, "patches and scripts are on its disk");
  return machine;
}

const PULLED = "the image was pulled";
const FOUND = "the image is on the host";

function withSearchPath({ spec }: Allocation, image: ImageConfig, launch: Launch): Launch {
  const path = searchPath(spec, image.env);
  return path === undefined ? launch : { ...launch, env: { ...launch.env, PATH: path } };
}

async function createOrFind(
  ctx: DockerContext,
  allocation: Allocation,
  options: ContainerCreateOptions,
  signal: AbortSignal,
): Promise<Machine | undefined> {
  try {
    const made = await call((more) => ctx.docker.createContainer({ ...options, ...more }), {
      signal,
    });
    return await inspectMachine(ctx, made.id, { signal });
  } catch (error) {
    // The name is taken: by a call that was cut off after its work was done.
    if (isStatus(error, 409)) return await foundInstead(ctx, allocation, signal);
    if (!(error instanceof DockerError)) throw error;
    throw error.status < 500 ? new EngineFailure(error.message) : startFault(error);
  }
}

// Nobody knows how far its disk has come; the next call does away with it.
async function foundInstead(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine | undefined> {
  if (needsPreparation(allocation))
    throw new EngineUnavailable("somebody else has made the sandbox's container meanwhile");
  return await findMachine(ctx, allocation.sandboxId, { signal });
}
