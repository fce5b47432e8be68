import { type Allocation, EngineFailure, EngineUnavailable } from "../../engine.ts";
import type { DockerContext } from "../context.ts";
import { inspectMachine, type Machine } from "../machines.ts";
import { mountVolumes, mustHaveMounts } from "../mounts/machine-mounts.ts";
import { networkFacts } from "../policy/facts.ts";
import { ruleset } from "../policy/ruleset.ts";
import { hasRules, setRules } from "../policy/set-rules.ts";
import { stopContainer } from "../stop-and-remove.ts";
import { GATE_INIT, gateOf, isGated, needsRules } from "./gated.ts";
import { becomes, HostProcess } from "./held-process.ts";

/** From the daemon's word that a container is up until its first process is the gate. */
const HELD_MS = 10_000;
/** The same for one that was started before, and is most likely past its gate. */
const FOUND_MS = 300;

/** How a machine that is up came to be so. */
export type Origin = "started" | "found";

/**
 * Sets the rules of a machine that waits at its gate, makes its mounts, and lets it pass. One that has passed is left
 * alone. Where any of that cannot be done the machine is killed: nothing of it has run by then.
 * @returns the machine as it is then
 * @throws EngineFailure, EngineUnavailable
 */
export async function openGate(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  origin: Origin,
): Promise<Machine> {
  const { container, containerId } = machine;
  const isUp = machine.instance.state === "running";
  if (!isUp || !isGated([container.Config.Entrypoint ?? []].flat())) return machine;
  try {
    await pass(ctx, machine, allocation, origin);
    return machine;
  } catch (error) {
    const now = await inspectMachine(ctx, containerId);
    // It ended meanwhile: that is its end, and not a rule's.
    if (now && !now.container.State.Running) return now;
    await stopContainer(ctx, containerId, 0);
    ctx.log.warn(
      { sandbox_id: machine.name.sandboxId, err: error },
      "kept at its gate, so no start",
    );
    if (error instanceof EngineFailure || error instanceof EngineUnavailable) throw error;
    throw new EngineFailure(`the machine could not be let through its gate: ${messageOf(error)}`);
  }
}

async function pass(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  origin: Origin,
): Promise<void> {
  const { container } = machine;
  const { spec } = allocation;
  const first = await HostProcess.of(container.State.Pid);
  try {
    if (!(await first.isIn(container.Id)))
      throw new Error("a container's processes are not among those that this program sees");
    // Past its gate, so whether policies can be kept just now is no matter of this machine.
    const gate = (await isPast(first)) ? undefined : await gateOf(ctx, spec);
    if (!gate || !(await isHeld(first, gate, origin, container.State.StartedAt))) {
      if (needsRules(ctx, spec)) await mustHaveRules(first, origin);
      return await mustHaveMounts(first, allocation);
    }
    if (needsRules(ctx, spec)) await enforce(container, first, spec.network);
    await mountVolumes(ctx, machine, first, allocation);
    // Still the same one: then its number is its own.
    if (await first.isHeldBy(gate)) process.kill(first.pid, "SIGUSR1");
    // So that who looks next does not find it at its gate.
    await becomes(() => hasLeft(first, gate), HELD_MS);
  } finally {
    await first.close();
  }
}

// One that has ended has left it, too.
function hasLeft(first: HostProcess, gate: Buffer): Promise<boolean> {
  return first.runs(gate).then(
    (isGate) => !isGate,
    () => true,
  );
}

async function enforce(
  container: Machine["container"],
  first: HostProcess,
  network: Allocation["spec"]["network"],
): Promise<void> {
  const parent = await HostProcess.of(await first.parent());
  try {
    await setRules(first, ruleset(network, await networkFacts(container, first, parent)));
  } finally {
    await parent.close();
  }
}

async function isHeld(
  first: HostProcess,
  gate: Buffer,
  origin: Origin,
  startedAt: string,
): Promise<boolean> {
  // One that was found may have been started a moment ago, by an orchestrator that is no more.
  const left = HELD_MS - (Date.now() - new Date(startedAt).getTime());
  const ms = origin === "started" ? HELD_MS : Math.min(HELD_MS, Math.max(FOUND_MS, left));
  const came = await becomes(async () => (await first.isHeldBy(gate)) || (await isPast(first)), ms);
  return came && !(await isPast(first));
}

// A path shows nothing but that waiting is vain: whose file it was is for the rules to say.
async function isPast(first: HostProcess): Promise<boolean> {
  return (await first.link("exe")) === GATE_INIT;
}

/**
 * For a machine that is past its gate: somebody else has let it through, or it never came to it.
 * @throws Error where it runs without rules
 */
async function mustHaveRules(first: HostProcess, origin: Origin): Promise<void> {
  const stand = await hasRules(first);
  // One that has run for long is not killed because nobody can look.
  if (stand === undefined && origin === "found") return;
  if (!stand) throw new Error("the machine did not come to its gate");
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
