import type { Caller } from "../../../runtime/caller.ts";
import type { BillingContext } from "../context.ts";
import { requireAccount } from "./account.ts";
import { monthStart } from "./calendar.ts";
import { amountCents, byMonth, charged, halfUp } from "./cost.ts";
import { addUse, METRICS, type Metric, NO_USE, type Use } from "./metrics.ts";
import { type GivenWindow, resolveWindow, type Window } from "./window.ts";

/** The bill of a window, exact but for the amounts. */
export interface Usage {
  window: Window;
  lines: { metric: Metric; quantity: bigint; amountCents: bigint }[];
  totalCents: bigint;
  projectedCents: bigint;
  /** In their order; only days on which something was used. */
  days: { day: number; use: Use }[];
  /** What volumes held when they were last measured; undefined: none ever was. */
  storedBytes: bigint | undefined;
  currency: string;
}

/** @throws ServiceError (INVALID_REQUEST, ORG_NOT_FOUND) */
export async function getUsage(
  ctx: BillingContext,
  { orgId }: Pick<Caller, "orgId">,
  given: GivenWindow,
): Promise<Usage> {
  const now = await ctx.store.now();
  const window = resolveWindow(given, now);
  const { plan, limits } = await requireAccount(ctx, orgId);
  // Pools are used up in the order of time, so what the month used before the window counts too.
  const parts = {
    before: { since: monthStart(window.since), until: window.since },
    within: { since: window.since, until: window.counted },
  };
  const [runs, storage, storedBytes] = await Promise.all([
    ctx.store.sumRuns(orgId, now, parts),
    ctx.store.sumStorage(orgId, now, parts),
    ctx.store.findStoredBytes(orgId),
  ]);
  const days = [...runs, ...storage];
  const months = byMonth(days);
  const within = days.filter(({ part }) => part === "within");
  const used = within.reduce((sum, { use }) => addUse(sum, use), NO_USE);
  const lines = METRICS.map((metric) => ({
    metric,
    quantity: used[metric],
    amountCents: amountCents(metric, charged(metric, months, limits), plan.prices),
  }));
  const totalCents = lines.reduce((sum, line) => sum + line.amountCents, 0n);
  return {
    window,
    lines,
    totalCents,
    projectedCents: projected(totalCents, window),
    days: byDay(within),
    storedBytes,
    currency: plan.currency,
  };
}

function byDay(days: readonly { day: number; use: Use }[]): Usage["days"] {
  const sums = new Map<number, Use>();
  for (const { day, use } of days) sums.set(day, addUse(sums.get(day) ?? NO_USE, use));
  return [...sums].map(([day, use]) => ({ day, use })).sort((a, b) => a.day - b.day);
}

// In proportion to the time that is over, where some of the period is and some is not.
function projected(totalCents: bigint, { since, counted, periodEnd }: Window): bigint {
  if (counted <= since || periodEnd <= counted) return totalCents;
  return halfUp(totalCents * BigInt(periodEnd - since), BigInt(counted - since));
}
