import { DAY_MS, monthEnd, monthStart } from "./calendar.ts";
import type { Limits } from "./limits.ts";
import { GIB, METRICS, type Metric, UNIT, type Use } from "./metrics.ts";
import type { Plan, Prices } from "./plan.ts";

/** What was used in a calendar month before a window and within it. */
export interface MonthUse {
  /** Its first instant. */
  start: number;
  before: Use;
  within: Use;
}

/** Prices are in millionths of a cent. */
const PER_CENT = 1_000_000n;

/**
 * What a window is charged for, exact: each month's pool is used up in the order of time, so a window takes what is
 * beyond it at its end less what was beyond it at its start. Windows that adjoin add up.
 */
export function charged(metric: Metric, months: readonly MonthUse[], limits: Limits): bigint {
  return months.reduce((sum, { start, before, within }) => {
    const pool = poolOf(metric, start, limits);
    if (pool === null) return sum;
    const beyond = (used: bigint) => (used > pool ? used - pool : 0n);
    return sum + beyond(before[metric] + within[metric]) - beyond(before[metric]);
  }, 0n);
}

/** In cents, half up. */
export function amountCents(metric: Metric, quantity: bigint, prices: Prices): bigint {
  return halfUp(quantity * prices[metric], UNIT[metric] * PER_CENT);
}

/** The quotient of what is not negative, half up. */
export function halfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}

/** What a month includes, exact; null: everything. */
export function poolOf(metric: Metric, month: number, limits: Limits): bigint | null {
  const included = limits[POOLS[metric]] ?? null;
  if (included === null) return null;
  return BigInt(included) * (metric === "storage" ? storageUnit(month) : UNIT[metric]);
}

/**
 * The limits of a plan as they are kept: what it has a price for and names no pool of includes nothing, for without a
 * limit everything would be included. A hard cap leaves nothing to charge beyond a pool, so there none is put.
 */
export function keptLimits({ limits, prices, hardCap }: Plan): Limits {
  if (hardCap) return limits;
  const priced = METRICS.filter((metric) => prices[metric] > 0n).map((metric) => POOLS[metric]);
  return { ...limits, ...Object.fromEntries(priced.map((pool) => [pool, limits[pool] ?? 0])) };
}

export const POOLS = {
  vcpu: "included_vcpu_hours",
  memory: "included_memory_gib_hours",
  disk: "included_disk_gib_hours",
  storage: "included_storage_gib",
} as const satisfies Record<Metric, keyof Limits>;

// A GiB is included for as long as the month is.
function storageUnit(month: number): bigint {
  return GIB * BigInt(monthEnd(month) - month);
}

/** Days of use, before a window and within it, by month. */
export function byMonth(
  days: readonly { part: "before" | "within"; day: number; use: Use }[],
): MonthUse[] {
  const months = new Map<number, MonthUse & Record<"before" | "within", Record<Metric, bigint>>>();
  for (const { part, day, use } of days) {
    const start = monthStart(day * DAY_MS);
    const month = months.get(start) ?? { start, before: none(), within: none() };
    months.set(start, month);
    for (const metric of METRICS) month[part][metric] += use[metric];
  }
  return [...months.values()];
}

const none = () => ({ vcpu: 0n, memory: 0n, disk: 0n, storage: 0n });
