import type { LeadingContext } from "../context.ts";
import {
  EngineFailure,
  EngineTrouble,
  EngineUnavailable,
  type Instance,
  InsufficientCapacity,
} from "../engines/engine.ts";
import type { StartingRun } from "../store.ts";
import { NOTED_SECS } from "../volumes/changes.ts";
import { allocationOf } from "./allocation.ts";
import { endOf, startFailed } from "./end.ts";

// A start that is too late already may have come up in time, unseen: there is time to look.
const LAST_LOOK_MS = 2_000;

/**
 * Has the engine bring up one run, and reports what came of it. May be repeated at any time: the engine's
 * verbs are idempotent and a report that comes twice changes nothing.
 * @param signal aborted when nobody wants the start any more
 * @returns "rest" where it is to be tried later: the engine had no room after all, or the run was stopped
 *   meanwhile, or another leads by now
 * @throws EngineTrouble, the run staying placed; EngineUnavailable, after it was put back into the queue
 */
export async function startRun(
  ctx: LeadingContext,
  run: StartingRun,
  unwanted: AbortSignal,
): Promise<"done" | "rest"> {
  if (!(await ctx.reports.placed(run))) return "rest";
  const late = AbortSignal.timeout(Math.max(LAST_LOOK_MS, run.startMsLeft));
  try {
    const signal = AbortSignal.any([late, unwanted]);
    await noteVolumes(ctx, run);
    const instance = await ctx.engine.ensureRunning(allocationOf(ctx, run), signal);
    await reportUp(ctx, run, instance);
    return "done";
  } catch (error) {
    // Nobody wants it: what the row says now is done on the next look at it.
    if (unwanted.aborted) return "done";
    return await reportFault(ctx, run, error, late.aborted);
  }
}

// Measured after the run too, however short it is. Without volumes nothing is asked.
async function noteVolumes({ store }: LeadingContext, { volumes }: StartingRun): Promise<void> {
  const ids = Object.values(volumes).map(({ volumeId }) => volumeId);
  if (ids.length > 0) await store.noteChanges([...new Set(ids)], NOTED_SECS);
}

async function reportFault(
  ctx: LeadingContext,
  run: StartingRun,
  error: unknown,
  late: boolean,
): Promise<"done" | "rest"> {
  if (error instanceof EngineFailure) {
    await ctx.reports.ended(run, startFailed(error.message));
  } else if (late || run.startMsLeft === 0) {
    await giveUp(ctx, run);
  } else if (error instanceof InsufficientCapacity) {
    await ctx.reports.waiting(run, "insufficient_capacity");
    return "rest";
  } else {
    // One that only this start troubles stays placed, so that its time limit goes on.
    const isAway = error instanceof EngineUnavailable && !(error instanceof EngineTrouble);
    if (isAway) await ctx.reports.waiting(run, "scheduling");
    throw error;
  }
  return "done";
}

async function giveUp(ctx: LeadingContext, run: StartingRun): Promise<void> {
  // What an engine that is away cannot stop now is stopped by comparison, as a machine that no run wants.
  await ctx.engine.stop(run, 0).catch((error: unknown) => {
    if (!(error instanceof EngineUnavailable)) throw error;
  });
  const secs = ctx.limits.startTimeoutSecs;
  await ctx.reports.ended(run, startFailed(`the machine did not come up within ${secs} s`));
}

// A machine may have come up and ended before anybody looked.
async function reportUp(ctx: LeadingContext, run: StartingRun, instance: Instance): Promise<void> {
  const { startedAt, workloadEndedAt, state } = instance;
  if (startedAt) await ctx.reports.running(run, startedAt);
  if (state === "ended") await ctx.reports.ended(run, endOf(instance));
  else if (workloadEndedAt) await ctx.reports.workloadEnded(run, workloadEndedAt);
}
