import type { DatabaseFacts } from "../facts.ts";

/** Every closed run is rolled up sooner or later. */
export function unmetered({ runs }: Pick<DatabaseFacts, "runs">): string[] {
  return runs
    .filter(({ closedAt, meteredMs }) => closedAt !== null && meteredMs === null)
    .map(({ sandboxId, generation }) => `${sandboxId}: run ${generation} is not rolled up`);
}

/** What is rolled up is what is billed, once, and adds up by day; an open run is not among it. */
export function metered({ runs, unevenDays }: DatabaseFacts): string[] {
  return [
    ...runs
      .filter(({ meteredMs, billedMs, closedAt }) =>
        closedAt === null ? meteredMs !== null : meteredMs !== null && meteredMs !== billedMs,
      )
      .map(
        ({ sandboxId, generation, billedMs, meteredMs }) =>
          `${sandboxId}: of run ${generation} ${meteredMs} ms are rolled up, ${billedMs} billed`,
      ),
    ...unevenDays.map((day) => `${day}: the total is not the sum of the runs`),
  ];
}
