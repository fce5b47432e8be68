import { invalidRequest } from "../../../runtime/errors.ts";
import { DAY_MS, monthEnd, monthStart } from "./calendar.ts";

/** A window as it is asked for, in milliseconds since 1970; undefined: the default. */
export interface GivenWindow {
  since: number | undefined;
  until: number | undefined;
}

/**
 * Inclusive; as an instant has no length this is the same as [since, until) to the millisecond.
 * Of what runs in it only what is past is counted: up to `counted`.
 */
export interface Window {
  since: number;
  until: number;
  counted: number;
  /** Where the period ends to which spending is projected. */
  periodEnd: number;
}

const LONGEST_DAYS = 92;
// What a Timestamp can hold.
const FIRST = Date.parse("0001-01-01T00:00:00Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * The default is the calendar month (UTC) up to now; where one end is given, the month of `until`, or up to now.
 * @throws ServiceError (INVALID_REQUEST) naming `since` or `until`
 */
export function resolveWindow(given: GivenWindow, now: number): Window {
  const outside = (["since", "until"] as const).filter((end) => !isInstant(given[end] ?? now));
  if (outside.length > 0)
    throw invalidRequest(
      outside.map((field) => ({ field, message: "must be within the years 1 to 9999" })),
    );
  const until = given.until ?? Math.max(now, given.since ?? now);
  const since = given.since ?? monthStart(Math.min(until, now));
  if (since > until) throw invalidRequest([{ field: "since", message: "must not be after until" }]);
  if (until - since > LONGEST_DAYS * DAY_MS) {
    const field = given.since === undefined ? "until" : "since";
    const message = `must leave a window of at most ${LONGEST_DAYS} days`;
    throw invalidRequest([{ field, message }]);
  }
  const isDefault = given.since === undefined && given.until === undefined;
  const periodEnd = isDefault ? monthEnd(now) : until;
  return { since, until, counted: Math.min(until, now), periodEnd };
}

function isInstant(ms: number): boolean {
  return ms >= FIRST && ms <= LAST;
}
