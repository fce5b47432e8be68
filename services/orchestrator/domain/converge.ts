import type { OrchestratorContext } from "../context.ts";
import {
  type Capacity,
  EngineFailure,
  EngineUnavailable,
  type Instance,
  InsufficientCapacity,
} from "../engines/engine.ts";
import type { DueRun } from "../store.ts";
import { allocationOf } from "./allocation.ts";
import { endOf, limitReached, startFailed, stoppedMachine } from "./end.ts";

// A start that is too late already may have come up in time, unseen: there is time to look.
const LAST_LOOK_MS = 2_000;

/**
 * Brings the engine to what one run's row says, and reports what came of it. May be repeated at any
 * time: the engine's verbs are idempotent and a report that comes twice changes nothing.
 * @param signal aborted when nobody wants the start any more
 * @throws EngineUnavailable; the run stays due
 */
export async function converge(
  ctx: OrchestratorContext,
  run: DueRun,
  signal: AbortSignal,
): Promise<void> {
  if (run.desired === "stopped") {
    const instance = await ctx.engine.stop(run, ctx.limits.stopGraceMs);
    await ctx.reports.ended(run, stoppedMachine(instance));
  } else if (run.phase === "running") {
    const instance = await ctx.engine.stop(run, ctx.limits.stopGraceMs);
    await ctx.reports.ended(run, limitReached(instance));
  } else if (run.queueExpired) {
    const secs = ctx.limits.queueTimeoutSecs;
    await ctx.reports.ended(run, startFailed(`no engine had room within ${secs} s`));
  } else if (exceeds(run, ctx.capacity())) {
    await ctx.reports.ended(run, startFailed("it asks for more than the engine's whole host has"));
  } else {
    await start(ctx, run, signal);
  }
}

// It would wait for room that there never is.
function exceeds({ spec }: DueRun, host: Capacity | undefined): boolean {
  if (!host) return false;
  const { vcpus, memoryMib } = spec.resources;
  return vcpus > host.vcpus || memoryMib > host.memoryMib;
}

async function start(ctx: OrchestratorContext, run: DueRun, unwanted: AbortSignal): Promise<void> {
  // One that waits for room stays `insufficient_capacity` until it is up, for it may have to wait on.
  if (!run.waiting) await ctx.reports.placed(run);
  const late = AbortSignal.timeout(Math.max(LAST_LOOK_MS, run.startMsLeft));
  try {
    const signal = AbortSignal.any([late, unwanted]);
    const instance = await ctx.engine.ensureRunning(allocationOf(ctx, run), signal);
    await reportUp(ctx, run, instance);
  } catch (error) {
    // Nobody wants it: what the row says now is done on the next look at it.
    if (unwanted.aborted) return;
    if (error instanceof EngineFailure) await ctx.reports.ended(run, startFailed(error.message));
    else if (error instanceof InsufficientCapacity) await ctx.reports.waiting(run);
    else if (late.aborted || run.startMsLeft === 0) await giveUp(ctx, run);
    else throw error;
  }
}

async function giveUp(ctx: OrchestratorContext, run: DueRun): Promise<void> {
  // What an engine that is away cannot stop now is stopped by comparison, as a machine that no run wants.
  await ctx.engine.stop(run, 0).catch((error: unknown) => {
    if (!(error instanceof EngineUnavailable)) throw error;
  });
  const secs = ctx.limits.startTimeoutSecs;
  await ctx.reports.ended(run, startFailed(`the machine did not come up within ${secs} s`));
}

// A machine may have come up and ended before anybody looked.
async function reportUp(ctx: OrchestratorContext, run: DueRun, instance: Instance): Promise<void> {
  if (instance.startedAt) await ctx.reports.running(run, instance.startedAt);
  if (instance.state === "ended") await ctx.reports.ended(run, endOf(instance));
}
