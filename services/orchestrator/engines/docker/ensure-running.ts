import { type Allocation, EngineFailure, EngineUnavailable, type Instance } from "../engine.ts";
import { call } from "./call.ts";
import type { DockerContext } from "./context.ts";
import { createMachine } from "./create-machine.ts";
import { isGated, needsGate } from "./gate/gated.ts";
import { openGate } from "./gate/open-gate.ts";
import { findMachine, inspectMachine, type Machine } from "./machines.ts";

import { formatName, type MachineName, watchOf } from "./names.ts";

import { needsPreparation } from "./patches/steps.ts";
import { startMachine } from "./start-machine.ts";
import { removeContainer, stopContainer } from "./stop-and-remove.ts";

const GRACE_MS = 5_000;

/** See Engine.ensureRunning. Each step leaves a state from which the next call goes on. */
export async function ensureRunning(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Instance> {
  signal.throwIfAborted();
  const found = await machineFor(ctx, allocation, signal);
  const machine = await guardedMachine(ctx, found, allocation, signal);
  const { state } = machine.instance;
  const up =
    state === "created"
      ? await startMachine(ctx, machine, allocation, signal)
      : await openGate(ctx, machine, allocation, "found");
  await settleName(ctx, up);
  return withWorkloadEnd(ctx, up);
}

function withWorkloadEnd({ workloads }: DockerContext, machine: Machine): Instance {
  const { containerId, container, instance, outputFrom } = machine;
  const watch = watchOf(container.Config.Labels);
  if (instance.state !== "running" || watch === undefined) return instance;
  return workloads.see({ containerId, instance, outputFrom, isEmpty: watch === "none" });
}

async function machineFor(
  ctx: DockerContext,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  const { sandboxId, generation } = allocation;
  const found = await findMachine(ctx, sandboxId, { signal });
  if (!found) return await createMachine(ctx, allocation, signal);
  if (found.container.State.Dead) throw new EngineUnavailable("the machine is being removed");
  if (isWorthless(found, allocation)) {
    await removeContainer(ctx, found.containerId, signal);
    return await createMachine(ctx, allocation, signal);
  }
  if (found.instance.generation === generation) return found;
  if (found.instance.generation > generation)
    throw new EngineFailure(
      `start ${generation} of the sandbox came after start ${found.instance.generation}`,
    );
  return await restart(ctx, found, generation, signal);
}

// Patches applied twice are not what was asked for, and of a disk that never was up nobody knows how far they came.
// The daemon's word counts: a machine may have been up, and have written to its disk, without anybody reporting it.
function isWorthless({ container, instance }: Machine, allocation: Allocation): boolean {
  if (!needsPreparation(allocation) || instance.generation > allocation.generation) return false;
  const hasBeenUp = new Date(container.State.StartedAt).getTime() > 0;
  return !hasBeenUp;
}

/** A machine that was made without a gate, while policies were not kept, does not run where they are. */
async function guardedMachine(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<Machine> {
  const { Config, State } = machine.container;
  const isOpen = needsGate(ctx, allocation.spec) && !isGated([Config.Entrypoint ?? []].flat());
  if (!isOpen || machine.instance.state === "ended") return machine;
  if (State.Status === "created") {
    await removeContainer(ctx, machine.containerId, signal);
    return await createMachine(ctx, allocation, signal);
  }
  if (State.Running) await stopContainer(ctx, machine.containerId, GRACE_MS, signal);
  throw new EngineFailure(
    "the sandbox was made while network policies were not enforced; destroy it and create it anew",
  );
}

/** Takes the machine of an older run over for this one; its disk stays. */
async function restart(
  ctx: DockerContext,
  older: Machine,
  generation: number,
  signal: AbortSignal,
): Promise<Machine> {
  const { containerId, container, name } = older;
  if (container.State.Running) await stopContainer(ctx, containerId, GRACE_MS, signal);
  const started = new Date(container.State.StartedAt).getTime();
  const after = started > 0 ? started : null;
  await rename(ctx, containerId, { ...name, generation, after }, signal);
  return await mustExist(ctx, containerId, signal);
}

// The mark of a restart goes once the machine has run under its name.
async function settleName(ctx: DockerContext, { containerId, name }: Machine): Promise<void> {
  if (name.after === null) return;
  await rename(ctx, containerId, { ...name, after: null });
}

async function rename(
  ctx: DockerContext,
  containerId: string,
  name: MachineName,
  signal?: AbortSignal,
): Promise<void> {
  const container = ctx.docker.getContainer(containerId);
  await call((options) => container.rename({ name: formatName(name), ...options }), { signal });
}

async function mustExist(
  ctx: DockerContext,
  containerId: string,
  signal: AbortSignal,
): Promise<Machine> {
  const machine = await inspectMachine(ctx, containerId, { signal });
  if (!machine) throw new EngineUnavailable("the machine vanished while it was started");
  return machine;
}
