import { EventEmitter, on } from "node:events";
import { EngineUnavailable } from "../engine.ts";
import { translate } from "./call.ts";
import type { DockerContext } from "./context.ts";
import { jsonLines } from "./json-lines.ts";
import { LABELS } from "./names.ts";

const EVENTS = ["start", "die", "oom", "destroy", "pause", "unpause"];

interface ContainerEvent {
  Actor: { Attributes: Record<string, string> };
}

/** See Engine.watch. */
export async function* watchMachines(
  ctx: DockerContext,
  signal: AbortSignal,
): AsyncGenerator<string> {
  if (signal.aborted) return;
  const changes = new EventEmitter();
  const ended = new AbortController();
  const onWorkloadEnd = (sandboxId: string) => changes.emit("change", sandboxId);
  ctx.workloads.found.on("end", onWorkloadEnd);
  const end = AbortSignal.any([signal, ended.signal]);
  const hints = on(changes, "change", { signal: end });
  const events = passEvents(ctx, changes, end).finally(() => ended.abort());
  // It is thrown below, which may be later than it failed.
  events.catch(() => undefined);
  try {
    // `on` yields the listener's arguments; ours has one.
    for await (const [sandboxId] of hints) yield sandboxId as string;
  } catch (error) {
    if (!end.aborted) throw error;
  } finally {
    ctx.workloads.found.off("end", onWorkloadEnd);
    ended.abort();
    await events.catch(() => undefined);
  }
  if (!signal.aborted) await events;
}

// Ends only by failing, or because nobody watches.
async function passEvents(
  ctx: DockerContext,
  changes: EventEmitter,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const event of jsonLines(await openEvents(ctx, signal))) {
      // The daemon's own message, of the type that the filters ask for.
      const { Actor } = event as ContainerEvent;
      const sandboxId = Actor.Attributes[LABELS.sandbox];
      if (sandboxId !== undefined) changes.emit("change", sandboxId);
    }
  } catch (error) {
    if (signal.aborted) return;
    throw new EngineUnavailable("Docker's events broke off", { cause: error });
  }
  if (!signal.aborted) throw new EngineUnavailable("Docker's events ended");
}

// Not bounded in time, as it is meant to last.
async function openEvents(ctx: DockerContext, signal: AbortSignal): Promise<NodeJS.ReadableStream> {
  const label = [`${LABELS.installation}=${ctx.installationId}`];
  const filters = { type: ["container" as const], event: EVENTS, label };
  // A constant, for dockerode's types do not know the signal that it takes.
  const options = { filters, abortSignal: signal };
  try {
    return await ctx.docker.getEvents(options);
  } catch (error) {
    throw translate(error);
  }
}
