import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import type { Log } from "../context.ts";
import { EngineUnavailable, type LogSource } from "../engines/engine.ts";
import type { LogHub } from "../logs/hub.ts";
import type { RunWatch } from "../logs/run-watch.ts";
import type { RunState } from "../store.ts";
import { startAt } from "./log-cursor.ts";
import { type LogEvent, RunFollower } from "./run-follower.ts";

/** What reading logs takes. */
export interface LogsContext {
  findLatestRun: (orgId: string, sandboxId: string) => Promise<RunState | null | undefined>;
  hub: LogHub;
  runs: RunWatch;
  log: Log;
}

export interface LogsQuery {
  sandboxId: string;
  sources: ReadonlySet<LogSource>;
  /** See log-cursor.ts. */
  after: Uint8Array;
}

/**
 * Follows the latest run until it has ended, or the signal. A run that begins meanwhile is not followed.
 * @throws ServiceError (SANDBOX_NOT_FOUND, INVALID_REQUEST, SERVICE_UNAVAILABLE)
 */
export async function* readLogs(
  ctx: LogsContext,
  caller: Caller,
  { sandboxId, sources, after }: LogsQuery,
  signal: AbortSignal,
): AsyncGenerator<LogEvent> {
  const run = await ctx.findLatestRun(caller.orgId, sandboxId);
  if (run === undefined) throw new ServiceError("SANDBOX_NOT_FOUND", "resource not found");
  const cursor = startAt(after, run?.generation ?? 0);
  if (run === null) {
    yield { kind: "opened" };
    yield { kind: "ended" };
    return;
  }
  const follower = new RunFollower(ctx, run, cursor, sources, signal);
  try {
    yield* follower.events();
  } catch (error) {
    if (!(error instanceof EngineUnavailable) || signal.aborted) throw error;
    ctx.log.warn({ err: error, sandbox_id: sandboxId }, "the engine did not let a log be read");
    throw new ServiceError("SERVICE_UNAVAILABLE", "service unavailable");
  } finally {
    follower.close();
  }
}
