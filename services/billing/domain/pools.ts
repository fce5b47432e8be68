import { POOLS, poolOf } from "./cost.ts";
import type { Limits } from "./limits.ts";
import type { Use } from "./metrics.ts";

/** What a hard cap is about. */
export type Pool = "included_vcpu_hours" | "included_memory_gib_hours";

/** What open runs add each millisecond. */
export type Rates = Pick<Use, "vcpu" | "memory">;

const CAPPED = ["vcpu", "memory"] as const;

/** The pools that a month's use has used up. One that is not limited never is. */
export function exhaustedPools(limits: Limits, month: number, used: Rates): Pool[] {
  return CAPPED.filter((metric) => {
    const pool = poolOf(metric, month, limits);
    return pool !== null && used[metric] >= pool;
  }).map((metric) => POOLS[metric]);
}

/** Milliseconds until the first of the pools is used up where all goes on as it does; undefined: none will be. */
export function exhaustedIn(
  limits: Limits,
  month: number,
  used: Rates,
  rates: Rates,
): number | undefined {
  const times = CAPPED.flatMap((metric) => {
    const pool = poolOf(metric, month, limits);
    if (pool === null || rates[metric] === 0n || used[metric] >= pool) return [];
    const rest = pool - used[metric];
    return [Number((rest + rates[metric] - 1n) / rates[metric])];
  });
  return times.length > 0 ? Math.min(...times) : undefined;
}
