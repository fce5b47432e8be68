// Instants are whole milliseconds since 1970, days whole days since then, both UTC.

export const DAY_MS = 86_400_000;

export function dayOf(ms: number): number {
  return Math.floor(ms / DAY_MS);
}

/** The first instant of the calendar month. */
export function monthStart(ms: number): number {
  return monthFrom(ms, 0);
}

/** The first instant of the next one. */
export function monthEnd(ms: number): number {
  return monthFrom(ms, 1);
}

function monthFrom(ms: number, later: number): number {
  const date = new Date(ms);
  // Not Date.UTC, which takes the years 0 to 99 for those of the twentieth century.
  return new Date(0).setUTCFullYear(date.getUTCFullYear(), date.getUTCMonth() + later, 1);
}
