const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/;
const SPACE = 0x20;
/** Longer than any timestamp. */
const MAX_LENGTH = 40;

/**
 * Nanoseconds since the epoch of an RFC 3339 time in UTC.
 * @throws Error where it is none
 */
export function nanosOf(text: string): bigint {
  const [, seconds, fraction = ""] = TIME.exec(text) ?? [];
  if (seconds === undefined) throw new Error("Docker's log has a line without its time");
  return BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, "0"));
}

/** A frame's time, and where its text begins. */
export function readTime(payload: Buffer): { time: bigint; begin: number } {
  const end = payload.subarray(0, MAX_LENGTH).indexOf(SPACE);
  return { time: nanosOf(payload.toString("latin1", 0, Math.max(0, end))), begin: end + 1 };
}

/** As the daemon's `since` takes it, which is inclusive. */
export function sinceOf(nanos: bigint): string {
  return `${nanos / 1_000_000_000n}.${String(nanos % 1_000_000_000n).padStart(9, "0")}`;
}

export function nanosOfDate(date: Date): bigint {
  return BigInt(date.getTime()) * 1_000_000n;
}
