import { EngineTrouble, EngineUnavailable } from "../engine.ts";

/** An answer of the daemon that is not a success. */
export class DockerError extends Error {
  override name = "DockerError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface CallLimits {
  /** The caller's; its reason is thrown as it is. */
  signal?: AbortSignal | undefined;
  timeoutMs?: number;
}

const TIMEOUT_MS = 30_000;

/**
 * One request to the daemon, bounded in time.
 * @throws DockerError for an answer that is no success, EngineUnavailable where none came
 */
export async function call<T>(
  request: (options: { abortSignal: AbortSignal }) => Promise<T>,
  { signal, timeoutMs = TIMEOUT_MS }: CallLimits = {},
): Promise<T> {
  const late = AbortSignal.timeout(timeoutMs);
  const abortSignal = signal ? AbortSignal.any([signal, late]) : late;
  try {
    return await Promise.race([request({ abortSignal }), aborted(abortSignal)]);
  } catch (error) {
    signal?.throwIfAborted();
    if (late.aborted)
      throw new EngineUnavailable(`Docker did not answer within ${timeoutMs / 1000} s`);
    throw translate(error);
  }
}

// For the requests that dockerode does not end by itself.
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** The same, with undefined for the answers that a verb takes in its stride. */
export async function callAllowing<T>(
  statuses: readonly number[],
  request: (options: { abortSignal: AbortSignal }) => Promise<T>,
  limits: CallLimits = {},
): Promise<T | undefined> {
  try {
    return await call(request, limits);
  } catch (error) {
    if (error instanceof DockerError && statuses.includes(error.status)) return undefined;
    throw error;
  }
}

export function isStatus(error: unknown, status: number): error is DockerError {
  return error instanceof DockerError && error.status === status;
}

/** What a client of the daemon threw, as one of ours; one of ours as it is. */
export function translate(error: unknown): unknown {
  if (error instanceof DockerError || error instanceof EngineUnavailable) return error;
  if (!(error instanceof Error)) return error;
  if ("statusCode" in error && typeof error.statusCode === "number")
    return new DockerError(error.statusCode, messageOf(error));
  return new EngineUnavailable(`Docker does not answer: ${error.message}`, { cause: error });
}

// The client puts the status and its own words before the daemon's.
function messageOf(error: Error): string {
  return error.message.replace(/^\(HTTP code \d+\) .*? - /s, "").trim();
}

/** Runs an engine's verb: an answer that it did not expect of the daemon is worth another try. */
export async function guarded<T>(verb: () => Promise<T>): Promise<T> {
  try {
    return await verb();
  } catch (error) {
    if (error instanceof DockerError)
      throw new EngineTrouble(`Docker answered ${error.status}: ${error.message}`, {
        cause: error,
      });
    throw error;
  }
}
