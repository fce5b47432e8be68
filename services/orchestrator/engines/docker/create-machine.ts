import type { ContainerCreateOptions } from "dockerode";
import { type Allocation, EngineFailure, EngineUnavailable } from "../engine.ts";
import { call, DockerError, isStatus } from "./call.ts";
import { containerOptions, type Launch } from "./container-options.ts";
import type { DockerContext } from "./context.ts";
import { findMachine, inspectMachine, type Machine } from "./machines.ts";
import { formatName } from "./names.ts";
import { supervisor } from "./supervisor.ts";
import { directCommand, type ImageConfig, workloadOf } from "./workload.ts";

/**
 * Makes the sandbox's container with its image, under a supervisor.
 * @throws EngineFailure where image or spec cannot be used
 */
export async function createMachine(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  const image = await ctx.images.ensure(allocation, signal);
  return await create(
    ctx,
    allocation,
    image,
    (init) => supervised(allocation, image, init),
    signal,
  );
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
  const image = await ctx.images.ensure(allocation, signal);
  const entrypoint = directCommand(allocation.spec.runtime, image);
  if (entrypoint.length === 0)
    throw new EngineFailure("the image has neither /bin/sh nor a command: nothing can run");
  return await create(
    ctx,
    allocation,
    image,
    (init) => ({ entrypoint, cmd: [], env: {}, init }),
    signal,
  );
}

function supervised(allocation: Allocation, image: ImageConfig, init: boolean): Launch {
  return { ...supervisor(init), cmd: workloadOf(allocation.spec.runtime, image), init };
}

async function create(
  ctx: DockerContext,
  allocation: Allocation,
  image: ImageConfig,
  launchWith: (init: boolean) => Launch,
  signal: AbortSignal,
): Promise<Machine> {
  const { hasInit } = await ctx.host();
  const launch = launchWith(hasInit);
  const options = containerOptions(allocation, image.id, ctx.installationId, launch);
  const name = formatName({ ...allocation, after: null });
  const machine = await createOrFind(ctx, allocation, { ...options, name }, signal);
  if (!machine) throw new EngineUnavailable("the machine vanished while it was made");
  return machine;
}

async function createOrFind(
  ctx: DockerContext,
  { sandboxId }: Allocation,
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
    if (isStatus(error, 409)) return await findMachine(ctx, sandboxId, { signal });
    if (error instanceof DockerError && error.status < 500) throw new EngineFailure(error.message);
    throw error;
  }
}
