import type { OrchestratorContext } from "../context.ts";
import type { Instance } from "../engines/engine.ts";
import type { OpenRun } from "../store.ts";
import { endOf, lostMachine } from "./end.ts";

/** What a comparison found that is to be done. */
export interface Observed {
  /** Machines that are up and that no open run wants. */
  unwanted: Instance[];
  /** Sandboxes that have a machine and do not exist. */
  unknown: string[];
}

/**
 * Compares every open run with every machine, and reports machines that ended or vanished.
 * @param isBusy sandboxes that are being worked on; their state is in motion, so they are left alone
 * @throws EngineUnavailable
 */
export async function observe(
  ctx: OrchestratorContext,
  isBusy: (sandboxId: string) => boolean,
): Promise<Observed> {
  // Rows first: a run that was up before the list was made is in it, or lost.
  const before = await ctx.store.listOpen();
  const machines = await ctx.engine.list();
  const byId = new Map(machines.map((machine) => [machine.sandboxId, machine]));
  for (const run of before) {
    // One that is due is stopped by us, whatever its machine's end looks like.
    if (run.phase !== "running" || run.due || isBusy(run.sandboxId)) continue;
    await reportGone(ctx, run, byId.get(run.sandboxId));
  }
  const idle = machines.filter(({ sandboxId }) => !isBusy(sandboxId));
  return { unwanted: await findUnwanted(ctx, idle), unknown: await findUnknown(ctx, idle) };
}

async function reportGone(
  ctx: OrchestratorContext,
  run: OpenRun,
  machine: Instance | undefined,
): Promise<void> {
  // A machine of a later generation is news that these rows are too old to judge.
  if (machine && machine.generation > run.generation) return;
  if (!machine || machine.generation < run.generation) await ctx.reports.ended(run, lostMachine());
  else if (machine.state === "ended") await ctx.reports.ended(run, endOf(machine));
}

// Rows again: a machine that was up when the list was made has its open run by now.
async function findUnwanted(
  ctx: OrchestratorContext,
  machines: readonly Instance[],
): Promise<Instance[]> {
  const up = machines.filter(({ state }) => state === "running");
  if (up.length === 0) return [];
  const open = new Map((await ctx.store.listOpen()).map((run) => [run.sandboxId, run.generation]));
  return up.filter(({ sandboxId, generation }) => open.get(sandboxId) !== generation);
}

async function findUnknown(
  ctx: OrchestratorContext,
  machines: readonly Instance[],
): Promise<string[]> {
  if (machines.length === 0) return [];
  return ctx.store.listUnknown(machines.map(({ sandboxId }) => sandboxId));
}

/** Stops a machine that no run wanted; asks once more, for now nobody else works on its sandbox. */
export async function stopUnwanted(ctx: OrchestratorContext, machine: Instance): Promise<void> {
  const { sandboxId, generation } = machine;
  if (await ctx.store.isOpen(sandboxId, generation)) return;
  ctx.log.warn({ sandboxId, generation }, "stopping a machine that no run wants");
  await ctx.engine.stop(machine, ctx.limits.stopGraceMs);
}
