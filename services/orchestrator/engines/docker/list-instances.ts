import type { ContainerInfo } from "dockerode";
import type { Instance } from "../engine.ts";
import type { DockerContext } from "./context.ts";
import { inspectMachine, listContainers, nameOf } from "./machines.ts";
import { watchOf } from "./names.ts";
import type { Watched } from "./workload-ends.ts";

const AT_ONCE = 8;

/**
 * Lists every machine. A container's list entry has no times and no exit code, so each is inspected, once in each
 * state: under one name it starts once and ends once, and what was seen then holds.
 */
export function createLister(ctx: DockerContext): () => Promise<Instance[]> {
  let seen = new Map<string, Instance>();
  return async () => {
    const known = seen;
    const containers = await listContainers(ctx);
    const instances = new Map<string, Instance>();
    for (let i = 0; i < containers.length; i += AT_ONCE) {
      const some = containers.slice(i, i + AT_ONCE);
      await Promise.all(
        some.map(async (entry) => {
          const instance =
            known.get(keyOf(entry)) ?? (await inspectMachine(ctx, entry.Id))?.instance;
          if (instance) instances.set(keyOf(entry), instance);
        }),
      );
    }
    seen = new Map([...instances].filter(([key]) => key.endsWith(SETTLED)));
    return withWorkloadEnds(ctx, containers, instances);
  };
}

function withWorkloadEnds(
  { workloads }: DockerContext,
  containers: readonly ContainerInfo[],
  instances: ReadonlyMap<string, Instance>,
): Instance[] {
  const watched: Watched[] = [];
  for (const entry of containers) {
    const instance = instances.get(keyOf(entry));
    const watch = watchOf(entry.Labels);
    if (instance?.state === "running" && watch !== undefined)
      watched.push({ containerId: entry.Id, instance, isEmpty: watch === "none" });
  }
  workloads.keep(watched);
  const seen = new Map(watched.map((one) => [one.instance, workloads.see(one)]));
  return [...instances.values()].map((instance) => seen.get(instance) ?? instance);
}

const SETTLED = " settled";

// Unsettled: it may be another state in fact by the next look, under the same key.
function keyOf({ Id, Names, State, Labels }: ContainerInfo): string {
  const name = Names[0] ?? "";
  const settled = State !== "created" && nameOf(name, Labels).after === null;
  return `${Id} ${name} ${State}${settled ? SETTLED : ""}`;
}
