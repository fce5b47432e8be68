import type { Facts, RunRow } from "../facts.ts";

/** Nothing is in between, and each sandbox has one open run where it runs, none otherwise; runs do not overlap. */
export function settledRuns({ sandboxes, runs }: Facts): string[] {
  const open = runs.filter(({ closedAt }) => closedAt === null);
  const openOf = Map.groupBy(open, ({ sandboxId }) => sandboxId);
  const known = new Set(sandboxes.map(({ id }) => id));
  return [
    ...sandboxes
      .filter(({ status, destroyed }) => destroyed || ["starting", "stopping"].includes(status))
      .map(
        ({ id, status, destroyed }) => `${id} is still ${destroyed ? "being destroyed" : status}`,
      ),
    ...sandboxes.flatMap(({ id, status, generation }) => {
      const own = (openOf.get(id) ?? []).map((run) => run.generation);
      const wanted = status === "running" ? [generation] : [];
      return String(own) === String(wanted) ? [] : [`${id} is ${status} and has open runs ${own}`];
    }),
    ...open
      .filter(({ sandboxId }) => !known.has(sandboxId))
      .map(({ sandboxId }) => `${sandboxId} is gone and has an open run`),
    ...[...Map.groupBy(runs, ({ sandboxId }) => sandboxId)].flatMap(([id, own]) =>
      overlaps(id, own),
    ),
  ];
}

function overlaps(id: string, runs: readonly RunRow[]): string[] {
  return runs.flatMap((run, i) => {
    const before = runs[i - 1];
    if (!before) return run.generation === 1 ? [] : [`${id}: its first run is ${run.generation}`];
    if (run.generation !== before.generation + 1) return [`${id}: no run before ${run.generation}`];
    return before.closedAt && before.closedAt <= run.admittedAt
      ? []
      : [`${id}: runs ${before.generation} and ${run.generation} overlap`];
  });
}
