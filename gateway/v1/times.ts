import Type from "typebox";
import { formatExact, type Instant } from "../../runtime/exact-time.ts";
import { asRecord, type RuleFault } from "../validation/rule.ts";

const RFC_3339 =
  /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:(?:[0-5]\d|60))(?:\.(\d+))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;
const HINT =
  "must be an RFC 3339 time such as 2026-11-01T00:00:00Z, with a `+` of its offset written as %2B";
const DIGITS = 9;
// Of year 1, and of what follows year 9999.
const FIRST_SECOND = -62_135_596_800n;
const END_SECOND = 253_402_300_800n;

/** Two optional bounds of a query, the first not behind the second. */
export function boundsOf(since: string, until: string) {
  return {
    since: Type.Optional(time(`${since} Inclusive.`)),
    until: Type.Optional(time(`${until} Inclusive.`)),
  };
}

function time(description: string) {
  const rule = (value: unknown) => (typeof value === "string" ? timeFault(value) : undefined);
  return Type.String({ format: "date-time", description, rule });
}

/** The rule of an object that has such bounds. */
export function boundsFault(value: unknown): RuleFault[] {
  const { since, until } = asRecord(value) ?? {};
  const [first, last] = [since, until].map((at) =>
    typeof at === "string" ? parse(at) : undefined,
  );
  if (!isInstant(first) || !isInstant(last)) return [];
  const nanos = (last.seconds - first.seconds) * 1_000_000_000n + BigInt(last.nanos - first.nanos);
  return nanos < 0n ? [{ at: ["since"], message: "must not be after until" }] : [];
}

/** @throws Error on a text that no schema has let through */
export function toInstant(text: string): Instant {
  const instant = parse(text);
  if (!isInstant(instant)) throw new Error(`${instant}: ${text}`);
  return instant;
}

export function toExactTime(instant: Instant | undefined): string {
  if (!instant) throw new Error("the answer lacks a time");
  return formatExact(instant);
}

function timeFault(text: string): string | undefined {
  const instant = parse(text);
  return isInstant(instant) ? undefined : instant;
}

/** @returns what is wrong with it, where it is no time */
function parse(text: string): Instant | string {
  const [, day = "", clock = "", fraction = "", sign, hours = 0, minutes = 0] =
    RFC_3339.exec(text) ?? [];
  if (day === "") return HINT;
  if (fraction.length > DIGITS) return `must have at most ${DIGITS} digits of a second`;
  const local = secondsOf(day, clock);
  if (local === undefined) return "must be a time that exists";
  const offset = (Number(hours) * 60 + Number(minutes)) * 60;
  const seconds = BigInt(local - (sign === "-" ? -offset : offset));
  if (seconds < FIRST_SECOND || seconds >= END_SECOND) return "must be of a year from 1 to 9999";
  if (clock.endsWith("60") && seconds % 86_400n !== 0n) return "must be a time that exists";
  return { seconds, nanos: Number(fraction.padEnd(DIGITS, "0")) };
}

/** Of a date and a clock in UTC; a leap second is the first of the next minute. */
function secondsOf(day: string, clock: string): number | undefined {
  const sixty = clock.endsWith("60");
  const plain = `${day}T${sixty ? `${clock.slice(0, -2)}59` : clock}`;
  const ms = Date.parse(`${plain}Z`);
  // The 30th of February is parsed as a day of March.
  if (Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(plain)) return undefined;
  return ms / 1000 + (sixty ? 1 : 0);
}

function isInstant(value: Instant | string | undefined): value is Instant {
  return typeof value === "object";
}
