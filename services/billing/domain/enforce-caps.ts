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
 * have running is stopped after the grace. Any number of processes may do it.
 * @returns milliseconds until there may be more to do
 */
export async function enforceCaps(ctx: CapContext): Promise<number> {
  const now = await ctx.store.now();
  const start = monthStart(now);
  const moment = { now, month: { start, day: dayOf(start) } };
  const capped = await ctx.store.listCapped(now, moment.month);
  const rests = [EVERY_MS, monthEnd(now) - now];
  for (const organization of capped) rests.push(await enforce(ctx, organization, moment));
  return Math.max(0, Math.min(...rests));
}

async function enforce(ctx: CapContext, organization: Capped, moment: Moment): Promise<number> {
  const { orgId, hardCap, limits, used, rates, exhaustion } = organization;
  const { start, day } = moment.month;
  const pools = hardCap ? exhaustedPools(limits, start, used) : [];
  if (exhaustion?.current && pools.includes(exhaustion.pool as Pool))
    return enforceGrace(ctx, orgId, exhaustion.age);
  if (exhaustion) await ctx.store.clearExhaustion(orgId, exhaustion.stamp, POOL_ACTOR);
  const [pool] = pools;
  if (!hardCap) return EVERY_MS;
  if (pool === undefined) return exhaustedIn(limits, start, used, rates) ?? EVERY_MS;
  await ctx.store.insertExhaustion({ orgId, pool, day }, POOL_ACTOR);
  return ctx.poolGraceMs;
}

/** @returns milliseconds until the grace is over; a stop that failed, or a start that slipped in, has the next round */
async function enforceGrace(ctx: CapContext, orgId: string, age: number): Promise<number> {
  if (age < ctx.poolGraceMs) return ctx.poolGraceMs - age;
  const running = await ctx.store.listRunning(orgId);
  for (let at = 0; at < running.length; at += STOPS_AT_ONCE)
    await Promise.all(
      running
        .slice(at, at + STOPS_AT_ONCE)
        .map((sandboxId) => ctx.stopSandbox({ orgId, sandboxId }).catch(ctx.onError)),
    );
  return EVERY_MS;
}
