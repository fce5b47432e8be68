import { posix } from "node:path";
import { type Allocation, EngineFailure, EngineUnavailable } from "../engine.ts";
import { callAllowing, DockerError } from "./call.ts";
import { containerDisk } from "./container-disk.ts";
import type { DockerContext } from "./context.ts";
import { createDirectMachine, createMachine } from "./create-machine.ts";
import { type Disk, whyNotRunnable } from "./find-program.ts";
import { GATE, GATE_DIRECTORY, gateOf, isGated, ungated } from "./gate/gated.ts";
import { refuseKernelVolumes, refuseLinkedVolumes } from "./gate/mounts.ts";
import { openGate } from "./gate/open-gate.ts";
import { findInit, isMadeWith, programsOf } from "./init.ts";
import { inspectMachine, type Machine, machineLog } from "./machines.ts";
import { checkSources } from "./mounts/machine-mounts.ts";
import { mountedDisk } from "./mounts/mounted-disk.ts";
import { dockerTmpfs, hasVolumes } from "./mounts/plan.ts";
import { joinNetwork } from "./network.ts";
import { needsPreparation } from "./patches/steps.ts";
import { isUpUnseen, startFault } from "./start-faults.ts";
import { removeContainer } from "./stop-and-remove.ts";
import { killStray } from "./stray.ts";
import { isSupervised, SUPERVISOR_NEEDS } from "./supervisor.ts";

const START_MS = 120_000;

/**
 * Starts a machine that has not run under its generation yet, after looking for the reasons why it could not.
 * @throws EngineFailure
 */
export async function startMachine(
  ctx: DockerContext,
  made: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  if (isGated(configuredEntrypoint(made))) refuseKernelVolumes(made);
  await checkSources(ctx, made, allocation);
  const machine = await withUsableInit(
    ctx,
    await withUsableShell(ctx, made, allocation, signal),
    allocation,
    signal,
  );
  await checkPrograms(machine, diskOf(ctx, machine, allocation, signal), allocation);
  const isHeld = isGated(configuredEntrypoint(machine));
  await Promise.all([
    allocation.spec.network.enabled ? joinNetwork(ctx, machine, signal) : undefined,
    isHeld ? readyGate(ctx, machine, allocation, signal) : undefined,
  ]);
  await start(ctx, machine, allocation, signal);
  const begun = await inspectMachine(ctx, machine.containerId, { signal });
  if (!begun) throw new EngineUnavailable("the machine vanished while it was started");
  const up = await openGate(ctx, begun, allocation, "started");
  machineLog(ctx, up).info({ generation: allocation.generation }, "the machine is up");
  return up;
}

// What is to be the gate's place has to be where it says, also for the kernel.
async function readyGate(
  ctx: DockerContext,
  machine: Machine,
  { spec }: Allocation,
  signal: AbortSignal,
): Promise<void> {
  await gateOf(ctx, spec);
  const disk = containerDisk(ctx.docker.getContainer(machine.containerId), { signal });
  const parent = posix.dirname(GATE_DIRECTORY);
  const found = await disk.stat(parent);
  if (found?.path !== parent || found.kind !== "directory")
    throw new EngineFailure(`${parent} of the sandbox's disk is not a directory`);
  await refuseLinkedVolumes(ctx, machine, signal);
}

function diskOf(
  ctx: DockerContext,
  { containerId, container }: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Disk {
  const { spec } = allocation;
  const own = containerDisk(ctx.docker.getContainer(containerId), { signal });
  const isFresh = container.State.Status === "created" && !needsPreparation(allocation);
  const tmpfs = dockerTmpfs(spec).map(({ guest }) => guest);
  const disk = isFresh ? ctx.disks.of(container.Image, own) : own;
  return mountedDisk(disk, tmpfs, allocation, ctx.volumes);
}

// Whether an image has a shell shows only in a container made from it.
async function withUsableShell(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  if (!isSupervised(entrypointOf(machine))) return machine;
  const disk = diskOf(ctx, machine, allocation, signal);
  const why = await whyNotRunnable(disk, SUPERVISOR_NEEDS, { path: undefined, workdir: "/" });
  if (why === undefined) return machine;
  if (machine.container.State.Status !== "created")
    throw new EngineFailure(`${SUPERVISOR_NEEDS} is gone from the sandbox's disk`);
  await removeContainer(ctx, machine.containerId, signal);
  return await createDirectMachine(ctx, allocation, signal);
}

// The same of its init; a machine that has been up keeps the one that it was made with.
async function withUsableInit(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  const { init } = allocation.spec;
  if (!init || machine.container.State.Status !== "created") return machine;
  const found = await findInit(diskOf(ctx, machine, allocation, signal), init);
  if (isMadeWith(machine.container.Config, entrypointOf(machine), found)) return machine;
  await removeContainer(ctx, machine.containerId, signal);
  return await createMachine(ctx, allocation, signal, found);
}

async function checkPrograms(machine: Machine, disk: Disk, { spec }: Allocation): Promise<void> {
  const { Env, WorkingDir, Cmd } = machine.container.Config;
  // The daemon sends null for what is empty.
  const path = (Env ?? []).findLast((pair) => pair.startsWith("PATH="))?.slice("PATH=".length);
  const search = { path, workdir: WorkingDir || "/" };
  const wanted = {
    ...programsOf(entrypointOf(machine), Cmd ?? [], spec.init !== null),
    shell: spec.runtime.shell ?? undefined,
  };
  for (const [what, program] of Object.entries(wanted)) {
    if (program === undefined) continue;
    const why = await whyNotRunnable(disk, program, search);
    if (why !== undefined) throw new EngineFailure(`${what} ${JSON.stringify(program)} ${why}`);
  }
}

function configuredEntrypoint({ container }: Machine): string[] {
  return [container.Config.Entrypoint ?? []].flat();
}

function entrypointOf(machine: Machine): string[] {
  return ungated(configuredEntrypoint(machine));
}

async function start(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  signal: AbortSignal,
  isFirstTry = true,
): Promise<void> {
  const container = ctx.docker.getContainer(machine.containerId);
  try {
    // 304: it is up already.
    await callAllowing([304], (options) => container.start(options), {
      signal,
      timeoutMs: START_MS,
    });
  } catch (error) {
    if (!(error instanceof DockerError)) throw error;
    if (isFirstTry && error.message.includes(GATE)) {
      // Somebody emptied or took away the volume that it lies in.
      await (hasVolumes(allocation.spec) ? ctx.mounting : ctx.policies).look();
      return await start(ctx, machine, allocation, signal, false);
    }
    if (isUpUnseen(error)) await killStray(machine.containerId);
    machineLog(ctx, machine).warn({ err: error }, "Docker refused to start a container");
    throw startFault(error);
  }
}
