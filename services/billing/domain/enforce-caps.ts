import type { Actor } from "../../../runtime/caller.ts";
import type { CapContext } from "../context.ts";
import type { Capped } from "../store.ts";
import { dayOf, monthEnd, monthStart } from "./calendar.ts";
import { exhaustedIn, exhaustedPools, type Pool } from "./pools.ts";

/** New runs and changed plans are seen this soon; what can be foreseen has a timer of its own. */
const EVERY_MS = 3_000;
const STOPS_AT_ONCE = 10;

/** Who stops what runs beyond a pool. */
export const POOL_ACTOR: Actor = {
  kind: "system",
  code: "pool_exhausted",
  label: "Included hours used up",
};

interface Moment {
  now: number;
  month: { start: number; day: number };
}

/**
 * One look at all hard-capped organizations: those whose pool is used up start nothing from here on, and what they
 * have running is stopped after the grace, some of it in each look. Any number of processes may do it.
 * @returns milliseconds until there may be more to do
 */
export async function enforceCaps(ctx: CapContext): Promise<number> {
  const now = await ctx.store.now();
  const start = monthStart(now);
  const moment = { now, month: { start, day: dayOf(start) } };
  const capped = await ctx.store.listCapped(now, moment.month);
  const rests = [EVERY_MS, monthEnd(now) - now];
  const overdue: string[] = [];
  for (const organization of capped) {
    const restMs = await enforce(ctx, organization, moment);
    if (restMs > 0) rests.push(restMs);
    else overdue.push(organization.orgId);
  }
  // What stops slowly keeps no other organization waiting for its verdict.
  if (overdue.length > 0) rests.push(await stopSome(ctx, overdue));
  return Math.max(0, Math.min(...rests));
}

/** @returns milliseconds until there may be more to do; none: the grace is over */
async function enforce(ctx: CapContext, organization: Capped, moment: Moment): Promise<number> {
  const { orgId, hardCap, limits, used, rates, exhaustion } = organization;
  const { start, day } = moment.month;
  const pools = hardCap ? exhaustedPools(limits, start, used) : [];
  if (exhaustion?.current && pools.includes(exhaustion.pool as Pool))
    return ctx.poolGraceMs - exhaustion.age;
  if (exhaustion) await ctx.store.clearExhaustion(orgId, exhaustion.stamp, POOL_ACTOR);
  const [pool] = pools;
  if (!hardCap) return EVERY_MS;
  if (pool === undefined) return exhaustedIn(limits, start, used, rates) ?? EVERY_MS;
  await ctx.store.insertExhaustion({ orgId, pool, day }, POOL_ACTOR);
  return Math.max(1, ctx.poolGraceMs);
}

/**
 * A few: what is decided now need not be true any more when all of them are stopped.
 * @returns milliseconds to the next look; a stop that failed, or a start that slipped in, has time until the next round
 */
async function stopSome(ctx: CapContext, orgIds: readonly string[]): Promise<number> {
  const running = await ctx.store.listRunning(orgIds, STOPS_AT_ONCE);
  let failed = 0;
  const fail = (error: unknown) => {
    failed += 1;
    ctx.onError(error);
  };
  await Promise.all(running.map((sandbox) => ctx.stopSandbox(sandbox).catch(fail)));
  return running.length === STOPS_AT_ONCE && failed === 0 ? 0 : EVERY_MS;
}
