export const DAY_MS = "86400000";

/** A day in SQL: days since 1970 as a date, and back. */
export const dateOf = (day: string) => `(date '1970-01-01' + (${day})::int)`;
export const dayOf = (date: string) => `(${date} - date '1970-01-01')`;

/**
 * The billed time of a run: from running to the stop's admission or the machine's end, whichever is first. Each instant
 * is cut off to the millisecond before anything else; `open` is where a run ends that goes on.
 */
export function billed(run: string, open: string): string {
  return `(SELECT billing.ms(${run}.running_at) AS since,
    coalesce(billing.ms(least(${run}.stop_admitted_at, ${run}.machine_ended_at, ${run}.closed_at)), ${open}) AS until)`;
}

/** The runs of organization `$1` that are not rolled up, with their billed time; `$2` is now. */
export const LIVE = `
  live AS MATERIALIZED (
    SELECT r.sandbox_id, r.vcpus, r.memory_mib, coalesce(r.disk_size_mib, 0) AS disk_mib, b.since, b.until
    FROM sandbox.runs r, LATERAL ${billed("r", "$2::float8::bigint")} b
    WHERE r.org_id = $1::uuid AND r.running_at IS NOT NULL AND r.metered_at IS NULL
  )`;

/** The days that [since, until) touches, and how long on each: rows of (day, ms). */
export function daysOf(since: string, until: string): string {
  return `(SELECT d.day, least(${until}, (d.day + 1) * ${DAY_MS}) - greatest(${since}, d.day * ${DAY_MS}) AS ms
    FROM generate_series(${since} / ${DAY_MS}, (${until} - 1) / ${DAY_MS}) AS d (day)
    WHERE ${since} < ${until})`;
}

/** How long the run day `row` lasted within [since, until). */
export function runDayMs(row: string, since: string, until: string): string {
  const midnight = midnightOf(row);
  return `greatest(0, least(${row}.end_ms, ${until} - ${midnight}) - greatest(${row}.start_ms, ${since} - ${midnight}))`;
}

/**
 * What was accrued on the day of `row` within [since, until): of a day that the window cuts, the part that its time is of
 * the row's. What lies before an instant is cut off to the unit, and a window has what lies before its end less what lies
 * before its beginning, so that windows that adjoin add up to the row.
 */
export function accruedWithin(row: string, since: string, until: string): string {
  const length = `(${row}.end_ms - ${row}.start_ms)`;
  const past = (instant: string) =>
    `least(greatest(${instant} - ${midnightOf(row)} - ${row}.start_ms, 0), ${length})`;
  const before = (instant: string) => `div(${row}.byte_ms * ${past(instant)}, ${length})`;
  const whole = `${since} <= ${midnightOf(row)} AND ${until} >= ${midnightOf(row)} + ${DAY_MS}`;
  return `CASE WHEN ${whole} THEN ${row}.byte_ms WHEN ${since} < ${until} THEN ${before(until)} - ${before(since)} ELSE 0 END`;
}

const midnightOf = (row: string) => `${dayOf(`${row}.day`)}::bigint * ${DAY_MS}`;
