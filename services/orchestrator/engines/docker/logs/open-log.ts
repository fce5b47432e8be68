import type { IncomingMessage } from "node:http";
import { EngineUnavailable, type LoggedRun, type LogPosition } from "../../engine.ts";
import { call, isStatus, translate } from "../call.ts";
import type { DockerContext } from "../context.ts";
import { findMachine, type Machine } from "../machines.ts";
import { type Frame, frames } from "./frames.ts";
import { nanosOfDate, sinceOf } from "./timestamps.ts";

const ANSWER_MS = 5_000;
const SECOND = 1_000_000_000n;

/** One reading of a run's log. */
export interface OpenLog {
  containerId: string;
  stream: IncomingMessage;
  /** The machine had ended before, so that the end of the stream is the end of the log. */
  whole: boolean;
}

/**
 * Begins to read the log of a run's machine from before a position.
 * @returns undefined where that machine is not there, or not up yet
 * @throws EngineUnavailable, DockerError
 */
export async function openLog(
  ctx: DockerContext,
  run: LoggedRun,
  after: LogPosition,
  signal: AbortSignal,
): Promise<OpenLog | undefined> {
  const machine = await findMachine(ctx, run.sandboxId, { signal, timeoutMs: ANSWER_MS });
  if (!machine || machine.instance.generation !== run.generation) return undefined;
  if (machine.instance.state === "created") return undefined;
  const since = sinceOf(beginOf(run, machine, after));
  try {
    const stream = await request(ctx, machine.containerId, since, signal);
    const { containerId } = machine;
    return { containerId, stream, whole: machine.instance.state === "ended" };
  } catch (error) {
    // Gone, or being removed.
    if (isStatus(error, 404) || isStatus(error, 409)) return undefined;
    throw error;
  }
}

/** From where on frames are wanted: a little before the position, but nothing of an earlier run. */
function beginOf(run: LoggedRun, { container }: Machine, after: LogPosition): bigint {
  const begin = beginOfRun(run, new Date(container.State.StartedAt));
  const [least = 0n] = [after.stdout, after.stderr].sort((a, b) => (a < b ? -1 : 1));
  return least - SECOND > begin ? least - SECOND : begin;
}

/**
 * One container serves every run of its sandbox. A machine's first lines may be older than the start that the daemon notes
 * for it, so it is the admission that parts a run from the one before.
 */
function beginOfRun({ generation, admittedAt }: LoggedRun, startedAt: Date): bigint {
  if (generation === 1) return 0n;
  // The daemon's clock may be another one, and be behind.
  if (admittedAt > startedAt) return nanosOfDate(startedAt) - SECOND;
  return nanosOfDate(admittedAt);
}

const WANTED = { stdout: true, stderr: true, timestamps: true } as const;

/** The newest frame of a machine's log; undefined: it has none. */
export async function newestFrame(
  { docker }: DockerContext,
  containerId: string,
  signal: AbortSignal,
): Promise<Frame | undefined> {
  const bytes = await call(
    (options) => docker.getContainer(containerId).logs({ ...WANTED, tail: 1, ...options }),
    { signal, timeoutMs: ANSWER_MS },
  );
  for await (const frame of frames([bytes])) return frame;
  return undefined;
}

// The answer is bounded in time; what follows it is meant to last.
async function request(
  { docker }: DockerContext,
  containerId: string,
  since: string,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const late = new AbortController();
  const error = new EngineUnavailable(`Docker did not answer within ${ANSWER_MS / 1000} s`);
  const timer = setTimeout(() => late.abort(error), ANSWER_MS);
  const abortSignal = AbortSignal.any([signal, late.signal]);
  const wanted = { ...WANTED, follow: true as const, since };
  try {
    const stream = await docker.getContainer(containerId).logs({ ...wanted, abortSignal });
    // With `follow` the daemon's answer is handed over as it comes, which the types do not say.
    return stream as IncomingMessage;
  } catch (failure) {
    signal.throwIfAborted();
    throw late.signal.aborted ? error : translate(failure);
  } finally {
    clearTimeout(timer);
  }
}
