import type { ContainerInfo, ContainerInspectInfo } from "dockerode";
import type { Instance } from "../engine.ts";
import type { EngineLog } from "../log.ts";
import { type CallLimits, call, callAllowing } from "./call.ts";
import { type DockerContext, sandboxLog } from "./context.ts";
import { LABELS, type MachineName, parseName } from "./names.ts";

/** A container of this installation. */
export interface Machine {
  containerId: string;
  name: MachineName;
  container: ContainerInspectInfo;
  instance: Instance;
  /** Nothing that the machine wrote in this run is older; what it wrote in earlier runs is. */
  outputFrom: Date;
}

/** The log of a machine's sandbox, as its label has it. */
export function machineLog(ctx: DockerContext, { name, container }: Machine): EngineLog {
  return sandboxLog(ctx, name.sandboxId, container.Config.Labels[LABELS.logLevel]);
}

/** The sandbox's machine; undefined: it has none. Labels decide, so nobody else's container is ever found. */
export async function findMachine(
  ctx: DockerContext,
  sandboxId: string,
  limits?: CallLimits,
): Promise<Machine | undefined> {
  const found = await listContainers(ctx, sandboxId, limits);
  const machines = await Promise.all(found.map(({ Id }) => inspectMachine(ctx, Id, limits)));
  return machines
    .filter((machine) => machine !== undefined)
    .sort((a, b) => b.instance.generation - a.instance.generation)[0];
}

export async function inspectMachine(
  ctx: DockerContext,
  containerId: string,
  limits?: CallLimits,
): Promise<Machine | undefined> {
  const container = await callAllowing(
    [404],
    (options) => ctx.docker.getContainer(containerId).inspect(options),
    limits,
  );
  if (!container) return undefined;
  const name = nameOf(container.Name, container.Config.Labels);
  const { State } = container;
  return {
    containerId,
    name,
    container,
    instance: instanceOf(name, State),
    outputFrom: outputFrom(State),
  };
}

/** Containers of this installation, or of one sandbox of it, running or not. */
export async function listContainers(
  ctx: DockerContext,
  sandboxId?: string,
  limits?: CallLimits,
): Promise<ContainerInfo[]> {
  const label = [`${LABELS.installation}=${ctx.installationId}`];
  if (sandboxId !== undefined) label.push(`${LABELS.sandbox}=${sandboxId}`);
  return await call(
    (options) => ctx.docker.listContainers({ all: true, filters: { label }, ...options }),
    limits,
  );
}

/** The label says whose it is. A name that somebody changed by hand counts as older than any run. */
export function nameOf(name: string, labels: Record<string, string>): MachineName {
  const sandboxId = labels[LABELS.sandbox] ?? "";
  const parsed = parseName(name);
  if (parsed?.sandboxId === sandboxId) return parsed;
  return { sandboxId, generation: 0, after: null };
}

type State = ContainerInspectInfo["State"];

/**
 * The daemon notes a start only when it has returned, so a machine's first lines may be older than that. The end of the run
 * before stays noted; between the two lies the making of the new process, so halfway is safely apart from both. Pure.
 */
export function outputFrom({ StartedAt, FinishedAt }: State): Date {
  const before = timeOf(FinishedAt)?.getTime();
  const started = timeOf(StartedAt)?.getTime() ?? 0;
  return new Date(before === undefined ? 0 : Math.min(started, (before + started) / 2));
}

const UP = ["running", "paused", "restarting"];
const KILLED = 128 + 9;

/** Pure. */
export function instanceOf({ sandboxId, generation, after }: MachineName, state: State): Instance {
  const startedAt = timeOf(state.StartedAt);
  const ran = startedAt !== null && startedAt.getTime() !== after;
  const nothing = {
    startedAt: null,
    endedAt: null,
    exitCode: null,
    outOfMemory: false,
    workloadEndedAt: null,
  };
  if (state.Status === "created" || !ran)
    return { sandboxId, generation, state: "created", ...nothing };
  if (UP.includes(state.Status))
    return { sandboxId, generation, ...nothing, state: "running", startedAt };
  return {
    sandboxId,
    generation,
    state: "ended",
    startedAt,
    endedAt: timeOf(state.FinishedAt),
    exitCode: state.ExitCode,
    // The daemon's flag is up as soon as any process was killed for memory; it is the machine that counts.
    outOfMemory: state.OOMKilled && state.ExitCode === KILLED,
    workloadEndedAt: null,
  };
}

// Docker writes the year 1 for never.
function timeOf(text: string): Date | null {
  const time = new Date(text);
  return time.getTime() > 0 ? time : null;
}
