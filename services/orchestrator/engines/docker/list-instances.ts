import type { ContainerInfo } from "dockerode";
import type { Instance } from "../engine.ts";
import type { DockerContext } from "./context.ts";
import { inspectMachine, listContainers, type Machine, nameOf } from "./machines.ts";
import { watchOf } from "./names.ts";
import type { Watched } from "./workload-ends.ts";

const AT_ONCE = 8;

type Seen = Pick<Machine, "instance" | "outputFrom">;

/**
 * Lists every machine. A container's list entry has no times and no exit code, so each is inspected, once in each
 * state: under one name it starts once and ends once, and what was seen then holds.
 */
export function createLister(ctx: DockerContext): () => Promise<Instance[]> {
  let seen = new Map<string, Seen>();
  return async () => {
    const known = seen;
    const containers = await listContainers(ctx);
    const machines = new Map<string, Seen>();
    for (let i = 0; i < containers.length; i += AT_ONCE) {
      const some = containers.slice(i, i + AT_ONCE);
      await Promise.all(
        some.map(async (entry) => {
          const machine = known.get(keyOf(entry)) ?? (await inspectMachine(ctx, entry.Id));
          if (machine) machines.set(keyOf(entry), pick(machine));
        }),
      );
    }
    seen = new Map([...machines].filter(([key]) => key.endsWith(SETTLED)));
    return withWorkloadEnds(ctx, containers, machines);
  };
}

function withWorkloadEnds(
  { workloads }: DockerContext,
  containers: readonly ContainerInfo[],
  machines: ReadonlyMap<string, Seen>,
): Instance[] {
  const watched: Watched[] = [];
  for (const entry of containers) {
    const machine = machines.get(keyOf(entry));
    const watch = watchOf(entry.Labels);
    if (machine?.instance.state === "running" && watch !== undefined)
      watched.push({ containerId: entry.Id, ...machine, isEmpty: watch === "none" });
  }
  workloads.keep(watched);
  const seen = new Map(watched.map((one) => [one.instance, workloads.see(one)]));
  return [...machines.values()].map(({ instance }) => seen.get(instance) ?? instance);
}

// The rest of an inspection is too much to keep.
function pick({ instance, outputFrom }: Seen): Seen {
  return { instance, outputFrom };
}

const SETTLED = " settled";

// Unsettled: it may be another state in fact by the next look, under the same key.
function keyOf({ Id, Names, State, Labels }: ContainerInfo): string {
  const name = Names[0] ?? "";
  const settled = State !== "created" && nameOf(name, Labels).after === null;
  return `${Id} ${name} ${State}${settled ? SETTLED : ""}`;
}
