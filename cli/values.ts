import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import { LimitsSchema, PricesSchema } from "../proto/gen/billing/v1/billing_service_pb.ts";

const UNIT_SECS = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 } as const;
const DURATION = /^(\d{1,9})([smhdw])$/;
const MOMENT = /^(\d{4})-(\d\d)-(\d\d)(T\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d))?$/;
const FRACTION = /\.(\d+)/;

/** How durations are written, for help. */
export const DURATION_FORM = "such as 90s, 30m, 12h, 30d or 2w";
export const MOMENT_FORM = "RFC 3339, such as 2026-12-31T12:00:00Z, or a date: its midnight in UTC";

/** `30d` -> seconds; `0` is none. */
export function parseDuration(text: string): number {
  const secs = secondsOf(text);
  if (secs === undefined) throw new InvalidArgumentError(`It is a duration ${DURATION_FORM}.`);
  return secs;
}

/** A moment, or a duration from now. */
export function parseFuture(text: string): Date {
  return parseMoment(text, 1);
}

/** A moment, or a duration ago; exact, for the audit log's times are finer than a Date. */
export function parsePast(text: string): Timestamp {
  const { seconds, nanos } = timestampFromDate(parseMoment(text, -1));
  const [, digits] = FRACTION.exec(text) ?? [];
  return create(TimestampSchema, {
    seconds,
    nanos: digits === undefined ? nanos : Number(digits.padEnd(9, "0")),
  });
}

function parseMoment(text: string, direction: 1 | -1): Date {
  const secs = secondsOf(text);
  const date = secs === undefined ? dateOf(text) : new Date(Date.now() + direction * secs * 1_000);
  // Timestamps end with the year 9999.
  if (date && date.getTime() >= 0 && date.getUTCFullYear() <= 9_999) return date;
  throw new InvalidArgumentError(`It is ${MOMENT_FORM}, or a duration ${DURATION_FORM}.`);
}

function secondsOf(text: string): number | undefined {
  if (text === "0") return 0;
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count && unit ? Number(count) * UNIT_SECS[unit as keyof typeof UNIT_SECS] : undefined;
}

function dateOf(text: string): Date | undefined {
  const [, year, month, day] = MOMENT.exec(text) ?? [];
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return undefined;
  // JavaScript takes 30 February for a day in March.
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= days ? date : undefined;
}

/** A limit by its public name; null: unlimited. */
export type LimitChange = readonly [name: string, value: number | null];

/** Public names, such as `max_sandboxes`. */
export const LIMITS: readonly string[] = LimitsSchema.fields.map(({ name }) => name);
/** Such as `vcpu_hour`. */
export const PRICES: readonly string[] = PricesSchema.fields.map(({ name }) => name);

const MAX_LIMIT = 2 ** 31 - 1;

/** `max_sandboxes=5` or `max_sandboxes=unlimited`. */
export function parseLimit(text: string): LimitChange {
  const [name, value] = split(text);
  requireOneOf(name, LIMITS);
  if (value === "unlimited") return [name, null];
  if (/^\d{1,10}$/.test(value) && Number(value) <= MAX_LIMIT) return [name, Number(value)];
  throw new InvalidArgumentError(`${name} is an integer from 0 to ${MAX_LIMIT}, or unlimited.`);
}

export function parseLimitName(name: string): string {
  requireOneOf(name, LIMITS);
  return name;
}

/** Millionths of a cent in a unit of the currency. */
const UNIT = 100_000_000n;

/** `vcpu_hour=0.05`, in the currency -> name and millionths of a cent. */
export function parsePrice(text: string): readonly [name: string, value: bigint] {
  const [name, value] = split(text);
  requireOneOf(name, PRICES);
  const [, whole, fraction = ""] = /^(\d{1,5})(?:\.(\d{1,8}))?$/.exec(value) ?? [];
  if (whole === undefined || Number(value) > 10_000)
    throw new InvalidArgumentError(
      `${name} is in the plan's currency, from 0 to 10000 with at most 8 decimals, such as 0.05.`,
    );
  return [name, BigInt(whole) * UNIT + BigInt(fraction.padEnd(8, "0"))];
}

/** Millionths of a cent -> a decimal number in the currency. */
export function formatPrice(price: bigint): string {
  const fraction = String(price % UNIT)
    .padStart(8, "0")
    .replace(/0+$/, "");
  return fraction === "" ? String(price / UNIT) : `${price / UNIT}.${fraction}`;
}

/** A parser of an option that may be given again and again. */
export function collecting<T>(parse: (text: string) => T) {
  return (text: string, earlier: readonly T[] | undefined): T[] => [
    ...(earlier ?? []),
    parse(text),
  ];
}

/** An integer of at least 1. */
export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It is an integer of at least 1.");
}

function split(text: string): [name: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("It is a name and a value with = between.");
  return [text.slice(0, at), text.slice(at + 1)];
}

function requireOneOf(name: string, names: readonly string[]): void {
  if (!names.includes(name)) throw new InvalidArgumentError(`The names are ${names.join(", ")}.`);
}
