import type { LeadingContext } from "../context.ts";
import type { Instance } from "../engines/engine.ts";
import type { OpenRun } from "../store.ts";
import { endOf, lostMachine } from "./end.ts";

/** What a comparison found that is to be done. */
export interface Observed {
  /** Machines that are up and that no open run wants. */
  unwanted: Instance[];
  /** Sandboxes that have a machine and do not exist. */
  unknown: string[];
  /** Something was reported, so there may be room, or a new limit. */
  changed: boolean;
}

/**
 * Compares every run that an engine has with every machine, and reports machines that ended or vanished and
 * workloads that ended.
 * @param list asks the engine
 * @param isBusy sandboxes that are being worked on; their state is in motion, so they are left alone
 * @throws EngineUnavailable
 */
export async function observe(
  ctx: LeadingContext,
  list: () => Promise<Instance[]>,
  isBusy: (sandboxId: string) => boolean,
): Promise<Observed> {
  // Rows first: a run that was up before the list was made is in it, or lost.
  const before = await ctx.store.listOpen();
  const asked = performance.now();
  const machines = await list();
  const byId = new Map(machines.map((machine) => [machine.sandboxId, machine]));
  const lastSeen = once(() => ctx.store.lastObserved(ctx.engine.name));
  let changed = false;
  for (const run of before) {
    if (isBusy(run.sandboxId)) continue;
    if (await reportNews(ctx, run, byId.get(run.sandboxId), lastSeen)) changed = true;
  }
  const expected = new Map(before.map(({ sandboxId, generation }) => [sandboxId, generation]));
  const strange = machines.filter(
    ({ sandboxId, generation }) => expected.get(sandboxId) !== generation && !isBusy(sandboxId),
  );
  const unwanted = await findUnwanted(ctx, strange);
  const unknown = await findUnknown(ctx, strange);
  await ctx.store.recordObserved(ctx.engine.name, ctx.epoch, performance.now() - asked);
  return { unwanted, unknown, changed };
}

async function reportNews(
  ctx: LeadingContext,
  run: OpenRun,
  machine: Instance | undefined,
  lastSeen: () => Promise<Date | null>,
): Promise<boolean> {
  // One that is due is stopped by us, whatever its machine's end looks like.
  if (run.phase !== "running" || run.due) return false;
  // A machine of a later generation is news that these rows are too old to judge.
  if (machine && machine.generation > run.generation) return false;
  if (!machine || machine.generation < run.generation)
    return ctx.reports.ended(run, lostMachine(await lastSeen()));
  if (machine.state === "ended") return ctx.reports.ended(run, endOf(machine));
  if (!machine.workloadEndedAt || run.workloadEnded) return false;
  return ctx.reports.workloadEnded(run, machine.workloadEndedAt);
}

// Rows again: a machine that was up when the list was made has its open run by now.
async function findUnwanted(
  ctx: LeadingContext,
  machines: readonly Instance[],
): Promise<Instance[]> {
  const up = machines.filter(({ state }) => state === "running");
  if (up.length === 0) return [];
  const open = await ctx.store.listOpenOf(up.map(({ sandboxId }) => sandboxId));
  const byId = new Map(open.map((run) => [run.sandboxId, run]));
  const wanted = ({ sandboxId, generation }: Instance) =>
    byId.get(sandboxId)?.generation === generation;
  for (const machine of up) {
    // A start that went back into the queue, and came up all the same: it has its room.
    if (wanted(machine) && byId.get(machine.sandboxId)?.queued) await ctx.reports.placed(machine);
  }
  return up.filter((machine) => !wanted(machine));
}

async function findUnknown(ctx: LeadingContext, machines: readonly Instance[]): Promise<string[]> {
  if (machines.length === 0) return [];
  return ctx.store.listUnknown(machines.map(({ sandboxId }) => sandboxId));
}

/** Stops a machine that no run wanted; asks once more, for now nobody else works on its sandbox. */
export async function stopUnwanted(ctx: LeadingContext, machine: Instance): Promise<"done"> {
  const { sandboxId, generation } = machine;
  if (await ctx.store.isOpen(sandboxId, generation)) return "done";
  ctx.log.warn({ sandbox_id: sandboxId, generation }, "stopping a machine that no run wants");
  await ctx.engine.stop(machine, ctx.limits.stopGraceMs);
  return "done";
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined;
  return () => {
    asked ??= ask();
    return asked;
  };
}
