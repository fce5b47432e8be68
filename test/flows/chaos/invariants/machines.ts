import type { Facts } from "../facts.ts";

/** Running sandboxes and running machines are the same, generation and all; no machine is nobody's, or was started again. */
export function machinesMatch({ sandboxes, machines, runs }: Facts): string[] {
  const key = (id: string, generation: number) => `${id} (${generation})`;
  const wanted = sandboxes
    .filter(({ status }) => status === "running")
    .map(({ id, generation }) => key(id, generation));
  const up = machines
    .filter(({ state }) => state === "running")
    .map(({ sandboxId, generation }) => key(sandboxId, generation));
  const known = new Set(sandboxes.map(({ id }) => id));
  const upSince = new Map(
    runs.map((run) => [key(run.sandboxId, run.generation), run.runningAt ?? new Date()]),
  );
  return [
    ...wanted.filter((each) => !up.includes(each)).map((each) => `${each} runs without a machine`),
    ...up
      .filter((each) => !wanted.includes(each))
      .map((each) => `${each} has a machine, and does not run`),
    ...up.filter((each, i) => up.indexOf(each) !== i).map((each) => `${each} has two machines`),
    ...machines
      .filter(({ sandboxId, generation, startedAt }) => {
        const since = upSince.get(key(sandboxId, generation));
        return since && startedAt && startedAt.getTime() > since.getTime() + 1;
      })
      .map(
        ({ sandboxId, generation }) => `${key(sandboxId, generation)} was started after it was up`,
      ),
    ...machines
      .filter(({ sandboxId }) => !known.has(sandboxId))
      .map(({ sandboxId, state }) => `${sandboxId} is gone and has a machine that is ${state}`),
  ];
}

/**
 * No machine was started twice for one generation in one life of the engine, none of an older generation after a newer
 * one, none that nobody had asked for, and none again that was known to be up.
 */
export function startsOnce({ starts, runs }: Facts): string[] {
  const runOf = new Map(runs.map((run) => [`${run.sandboxId} ${run.generation}`, run]));
  const faults: string[] = [];
  const seen = new Set<string>();
  const newest = new Map<string, number>();
  for (const { life, sandboxId, generation, startedAt } of starts) {
    const what = `${sandboxId} (${generation})`;
    if (seen.has(`${life} ${what}`)) faults.push(`${what} was started twice`);
    seen.add(`${life} ${what}`);
    if ((newest.get(sandboxId) ?? 0) > generation)
      faults.push(`${what} was started after ${newest.get(sandboxId)}`);
    newest.set(sandboxId, Math.max(generation, newest.get(sandboxId) ?? 0));
    const run = runOf.get(`${sandboxId} ${generation}`);
    if (!run) faults.push(`${what} was started without a run`);
    else if (run.runningAt && startedAt > run.runningAt.getTime() + 1)
      faults.push(`${what} was started again after it had been running`);
  }
  return faults;
}
