// What billing has to accrue for measurements of one volume, told without SQL.

export const DAY = 86_400_000;

/** What one volume held on one UTC day: bytes times milliseconds from `start` to `end`, milliseconds since 1970. */
export interface AccruedDay {
  start: number;
  end: number;
  byteMs: bigint;
}

/** By day since 1970. */
export type AccruedDays = Map<number, AccruedDay>;

/**
 * Adds a stretch on which the bytes grow or shrink evenly. What lies before an instant of it is cut off to the unit, and
 * a day has what lies before its end less what lies before its beginning.
 */
export function accrue(
  days: AccruedDays,
  [t0, from]: readonly [ms: number, bytes: bigint],
  [t1, to]: readonly [ms: number, bytes: bigint],
): void {
  const length = BigInt(t1 - t0);
  const upTo = (t: number) => {
    const ms = BigInt(t - t0);
    return from * ms + ((to - from) * ms * ms) / (2n * length);
  };
  for (let day = Math.floor(t0 / DAY); day * DAY < t1; day += 1) {
    const [start, end] = [Math.max(t0, day * DAY), Math.min(t1, (day + 1) * DAY)];
    const before = days.get(day);
    const byteMs = (before?.byteMs ?? 0n) + upTo(end) - upTo(start);
    days.set(day, { start: before?.start ?? start, end, byteMs });
  }
}
