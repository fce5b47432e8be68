import type { OrchestratorContext } from "../context.ts";
import type { Instance } from "../engines/engine.ts";
import type { OpenRun } from "../store.ts";
import { endOf, lostMachine } from "./end.ts";

/**
 * Compares every open run with every machine: machines that ended or vanished are reported, and a
 * machine that no open run wants is stopped.
 * @param isBusy sandboxes that are being worked on; their state is in motion, so they are left alone
 * @throws EngineUnavailable
 */
export async function observe(
  ctx: OrchestratorContext,
  isBusy: (sandboxId: string) => boolean,
): Promise<void> {
  // Rows first: a run that was up before the list was made is in it, or lost.
  const before = await ctx.store.listOpen();
  const machines = await ctx.engine.list();
  const byId = new Map(machines.map((machine) => [machine.sandboxId, machine]));
  for (const run of before) {
    if (run.phase !== "running" || isBusy(run.sandboxId)) continue;
    await reportGone(ctx, run, byId.get(run.sandboxId));
  }
  await stopUnwanted(ctx, machines, isBusy);
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
async function stopUnwanted(
  ctx: OrchestratorContext,
  machines: readonly Instance[],
  isBusy: (sandboxId: string) => boolean,
): Promise<void> {
  const up = machines.filter(({ state, sandboxId }) => state === "running" && !isBusy(sandboxId));
  if (up.length === 0) return;
  const open = new Map((await ctx.store.listOpen()).map((run) => [run.sandboxId, run]));
  for (const { sandboxId, generation } of up) {
    if (open.get(sandboxId)?.generation === generation || isBusy(sandboxId)) continue;
    ctx.log.warn({ sandboxId, generation }, "stopping a machine that no run wants");
    await ctx.engine.stop(sandboxId, ctx.limits.stopGraceMs);
  }
}
