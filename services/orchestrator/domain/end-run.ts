import type { LeadingContext } from "../context.ts";
import type { Instance } from "../engines/engine.ts";
import type { EndingRun } from "../store.ts";
import { type End, limitReached, stopFailed, stoppedMachine } from "./end.ts";

// Beyond the grace, for one whose time is over already: it may be stopped all the same.
const LAST_TRY_MS = 2_000;

/**
 * Ends one run: one that is to be stopped, or that has reached its limit.
 * @returns "rest" where another leads by now
 * @throws EngineUnavailable while there is time left; the run stays due
 */
export async function endRun(ctx: LeadingContext, run: EndingRun): Promise<"done" | "rest"> {
  return (await ctx.reports.ended(run, await end(ctx, run))) ? "done" : "rest";
}

async function end(ctx: LeadingContext, run: EndingRun): Promise<End> {
  // No engine has it. What one that was away has begun of it is stopped by comparison.
  if (!run.placed) return stoppedMachine(undefined);
  const stopped = await tryStop(ctx, run);
  if (stopped === "late") return stopFailed(ctx.limits.stopTimeoutSecs);
  return run.desired === "stopped" ? stoppedMachine(stopped) : limitReached(stopped);
}

async function tryStop(
  { engine, limits }: LeadingContext,
  run: EndingRun,
): Promise<Instance | undefined | "late"> {
  const stopping = engine.stop(run, limits.stopGraceMs);
  if (run.stopMsLeft === null) return stopping;
  const ms = Math.max(limits.stopGraceMs + LAST_TRY_MS, run.stopMsLeft);
  const { promise: late, resolve } = Promise.withResolvers<"late">();
  const timer = setTimeout(resolve, ms, "late");
  try {
    return await Promise.race([stopping, late]);
  } catch (error) {
    if (run.stopMsLeft > 0) throw error;
    return "late";
  } finally {
    clearTimeout(timer);
    // Nobody waits for one that comes back after all.
    stopping.catch(() => undefined);
  }
}
