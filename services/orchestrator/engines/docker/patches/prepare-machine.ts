import type Docker from "dockerode";
import { type Allocation, EngineFailure } from "../../engine.ts";
import { type CallLimits, call, DockerError } from "../call.ts";
import { kindAt } from "../container-disk.ts";
import type { DockerContext } from "../context.ts";
import type { Machine } from "../machines.ts";
import { planMounts } from "../mounts/plan.ts";
import { isTransient } from "../start-faults.ts";
import { sizeOf, type TarEntry, writeTar } from "../write-tar.ts";
import { archiveOf } from "./archive.ts";
import { containerFiles } from "./container-files.ts";
import { copiesFor } from "./copies.ts";
import { planPatches } from "./plan.ts";
import { needsPreparation, preparationSteps, whyOutOfReach } from "./steps.ts";

const WRITE_MS = 120_000;
/** Bytes that the slowest disk takes in a millisecond. */
const SLOWEST_PER_MS = 5_000;
const LONGEST_MS = 24 * 60 * 60 * 1_000;

/**
 * Applies patches and scripts to the disk of a container that was just made. What breaks off half-way leaves a container
 * that is good for nothing: it is never started, and made anew.
 * @throws EngineFailure naming the patch that cannot be applied
 */
export async function prepareMachine(
  ctx: DockerContext,
  machine: Machine,
  allocation: Allocation,
  signal: AbortSignal,
): Promise<void> {
  if (!needsPreparation(allocation)) return;
  const container = ctx.docker.getContainer(machine.containerId);
  const tmpfs = Object.keys(machine.container.HostConfig.Tmpfs ?? {});
  const mountPoints = [...tmpfs, ...planMounts(allocation).map(({ guest }) => guest)];
  const files = containerFiles(container, { signal });
  const steps = preparationSteps(allocation);
  const overlay = await planPatches(steps, files, {
    whyOutOfReach: (path) => whyOutOfReach(path, mountPoints),
    mountPoints,
    copies: copiesFor(ctx, allocation, signal),
  });
  const { entries, removals } = await archiveOf(overlay);
  await write(container, entries, signal);
  for (const { path, by } of removals) await remove(container, path, by, { signal });
}

async function write(
  container: Docker.Container,
  entries: readonly TarEntry[],
  signal: AbortSignal,
): Promise<void> {
  if (entries.length === 0) return;
  const bytes = entries.reduce((sum, { content }) => sum + sizeOf(content), 0);
  const timeoutMs = Math.min(WRITE_MS + Math.ceil(bytes / SLOWEST_PER_MS), LONGEST_MS);
  // An archive that breaks off is not taken for a whole one: its request is cut.
  const broken = new AbortController();
  const archive = writeTar(entries).on("error", (error) => broken.abort(error));
  try {
    await call((options) => container.putArchive(archive, { path: "/", ...options }), {
      signal: AbortSignal.any([signal, broken.signal]),
      timeoutMs,
    });
  } catch (error) {
    if (!(error instanceof DockerError) || isTransient(error)) throw error;
    throw new EngineFailure(`the patches could not be applied: ${error.message}`);
  } finally {
    archive.destroy();
  }
}

/**
 * No archive says that something is to go. But the daemon makes room for each entry before it makes it, and of a hard link to
 * what has just gone nothing comes: only the room.
 */
async function remove(
  container: Docker.Container,
  path: string,
  by: string,
  limits: CallLimits,
): Promise<void> {
  const name = path.slice(1);
  const link: TarEntry = { header: { name, type: "link", linkname: name }, content: [] };
  const refused = await call(
    (options) => container.putArchive(writeTar([link]), { path: "/", ...options }),
    limits,
  ).catch((error: unknown) => {
    if (!(error instanceof DockerError)) throw error;
    return error;
  });
  if ((await kindAt(container, path, limits)) === undefined) return;
  const why = refused instanceof DockerError ? `: ${refused.message}` : "";
  throw new EngineFailure(`${by}: ${JSON.stringify(path)} could not be removed${why}`);
}
