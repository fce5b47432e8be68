import { EngineUnavailable, type Instance, type RunKey } from "../engine.ts";
import { callAllowing, isStatus } from "./call.ts";
import { type DockerContext, sandboxLog } from "./context.ts";
import { findMachine, inspectMachine, listContainers, machineLog } from "./machines.ts";
import { formatName, LABELS } from "./names.ts";
import { killStray } from "./stray.ts";

/** How much longer than the grace the daemon may take to end a container. */
const KILL_MS = 30_000;
const REMOVE_MS = 60_000;

/** See Engine.stop. */
export async function stopMachine(
  ctx: DockerContext,
  { sandboxId, generation }: RunKey,
  graceMs: number,
): Promise<Instance | undefined> {
  const machine = await findMachine(ctx, sandboxId);
  const isUp = machine?.instance.state === "running";
  if (!machine || machine.instance.generation > generation) return machine?.instance;
  if (machine.instance.state === "created") await killStray(machine.containerId);
  if (!isUp) return machine.instance;
  // By its name, which a later run changes first: the daemon then knows of nothing to stop.
  await stopContainer(ctx, formatName(machine.name), graceMs);
  const ended = await inspectMachine(ctx, machine.containerId);
  // Its start took the mark from its name meanwhile: that name was nobody's.
  if (ended?.instance.state === "running" && ended.instance.generation <= generation)
    throw new EngineUnavailable("the machine was renamed while it was to be stopped");
  const { exitCode } = ended?.instance ?? {};
  machineLog(ctx, machine).info({ generation, exitCode }, "the machine is stopped");
  return ended?.instance;
}

/** SIGTERM, and SIGKILL after the grace, in whole seconds as Docker counts; already ended or gone is success. */
export async function stopContainer(
  ctx: DockerContext,
  idOrName: string,
  graceMs: number,
  signal?: AbortSignal,
): Promise<void> {
  const container = ctx.docker.getContainer(idOrName);
  const t = Math.ceil(graceMs / 1000);
  const limits = { signal, timeoutMs: graceMs + KILL_MS };
  await callAllowing([304, 404], (options) => container.stop({ t, ...options }), limits);
}

/** See Engine.remove. */
export async function removeMachine(ctx: DockerContext, sandboxId: string): Promise<void> {
  const containers = await listContainers(ctx, sandboxId);
  await Promise.all(
    containers.map(async ({ Id, Labels }) => {
      await removeContainer(ctx, Id);
      const log = sandboxLog(ctx, sandboxId, Labels[LABELS.logLevel]);
      log.info({ container: Id }, "the machine and its disk are removed");
    }),
  );
}

/** Container, disk and anonymous volumes; returns when they are gone. */
export async function removeContainer(
  ctx: DockerContext,
  containerId: string,
  signal?: AbortSignal,
): Promise<void> {
  const container = ctx.docker.getContainer(containerId);
  const limits = { signal, timeoutMs: REMOVE_MS };
  try {
    await callAllowing(
      [404],
      (options) => container.remove({ force: true, v: true, ...options }),
      limits,
    );
  } catch (error) {
    // Somebody else is removing it.
    if (!isStatus(error, 409)) throw error;
    const condition = "removed";
    await callAllowing([404], (options) => container.wait({ condition, ...options }), limits);
  }
  await killStray(containerId);
}
