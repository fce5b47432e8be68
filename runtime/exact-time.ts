import type { Timestamp } from "@bufbuild/protobuf/wkt";

/** A point in time, exact to the nanosecond. */
export type Instant = Pick<Timestamp, "seconds" | "nanos">;

/** RFC 3339 in UTC, with as many of 3, 6 or 9 digits of the second as it takes: what was told finds itself again. */
export function formatExact({ seconds, nanos }: Instant): string {
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, -".000Z".length);
  const digits = String(nanos).padStart(9, "0");
  return `${whole}.${digits.replace(/(?:000){1,2}$/, "").padEnd(3, "0")}Z`;
}
