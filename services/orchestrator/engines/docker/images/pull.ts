import type Docker from "dockerode";
import { EngineFailure } from "../../engine.ts";
import { call, DockerError, translate } from "../call.ts";
import { jsonLines } from "../json-lines.ts";
import { pullFault } from "./pull-faults.ts";
import { familiar, type Reference } from "./reference.ts";

/** How long a registry may stay silent before a pull counts as failed. */
export interface PullPatience {
  /** Until it has answered at all. */
  answerMs: number;
  /** Between two signs of progress. */
  stallMs: number;
}

/** What the daemon presents to a registry; undefined: nothing. */
export type Credentials = Docker.AuthConfigObject | undefined;

/** A line of the daemon's progress, as far as it counts here. */
interface Progress {
  error?: string;
}

/**
 * Pulls an image; it is there when this returns.
 * @throws EngineFailure with a sentence for the sandbox's owner; EngineUnavailable; the signal's reason
 */
export async function pull(
  docker: Docker,
  reference: Reference,
  credentials: Credentials,
  patience: PullPatience,
  signal: AbortSignal,
): Promise<void> {
  const stall = new AbortController();
  let timer = setTimeout(() => stall.abort(), patience.answerMs);
  try {
    const abortSignal = AbortSignal.any([signal, stall.signal]);
    if (reference.version.kind === "digest")
      await checkAccess(docker, reference, credentials, abortSignal);
    for await (const { error } of progress(docker, reference, credentials, abortSignal)) {
      if (error !== undefined) throw new DockerError(500, error);
      clearTimeout(timer);
      timer = setTimeout(() => stall.abort(), patience.stallMs);
    }
  } catch (error) {
    signal.throwIfAborted();
    if (stall.signal.aborted)
      throw new EngineFailure(`registry ${reference.host} stopped answering`);
    const fault = translate(error);
    throw fault instanceof DockerError
      ? pullFault(fault.message, reference, credentials !== undefined)
      : fault;
  } finally {
    clearTimeout(timer);
  }
}

// What the daemon has of a digest it takes without asking the registry, whoever pulled it.
async function checkAccess(
  docker: Docker,
  reference: Reference,
  credentials: Credentials,
  signal: AbortSignal,
): Promise<void> {
  const image = docker.getImage(familiar(reference));
  const options = credentials ? { authconfig: credentials } : {};
  await call(() => image.distribution(options), { signal });
}

async function* progress(
  docker: Docker,
  { name, version }: Reference,
  credentials: Credentials,
  abortSignal: AbortSignal,
): AsyncGenerator<Progress> {
  const options = { fromImage: name, tag: version.value, abortSignal };
  const stream = await docker.createImage(credentials, options);
  // Each line of this endpoint is an object of that shape.
  for await (const line of jsonLines(stream)) yield line as Progress;
}
