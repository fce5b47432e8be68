import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { boundsFault, boundsOf, toExactTime, toInstant } from "../../gateway/v1/times.ts";

const { since } = boundsOf("From.", "To.");
const faultOf = (text: string) => (since as { rule?: (value: unknown) => unknown }).rule?.(text);

const FIRST = -62_135_596_800n;
const LAST = 253_402_300_799n;
const nanos = fc.integer({ min: 0, max: 999_999_999 });
const instant = fc.record({ seconds: fc.bigInt({ min: FIRST, max: LAST }), nanos });

describe("a time", () => {
  test.each([
    ["1970-01-01T00:00:00Z", 0n, 0],
    ["1970-01-01t00:00:00z", 0n, 0],
    ["1970-01-01T00:00:00-00:00", 0n, 0],
    ["1970-01-01T02:30:00.5+02:30", 0n, 500_000_000],
    ["1969-12-31T22:00:00.000000001-02:00", 0n, 1],
    ["1969-12-31T23:59:59.999999999Z", -1n, 999_999_999],
    ["2026-11-21T08:15:30.120417Z", 1_795_248_930n, 120_417_000],
    ["2024-02-29T00:00:00Z", 1_709_164_800n, 0],
    ["2016-12-31T23:59:60.25Z", 1_483_228_800n, 250_000_000],
    ["2017-01-01T00:59:60+01:00", 1_483_228_800n, 0],
    ["0001-01-01T00:00:00Z", FIRST, 0],
    ["9999-12-31T23:59:59Z", LAST, 0],
  ])("%s", (text, seconds, ns) => {
    expect(faultOf(text)).toBeUndefined();
    expect(toInstant(text)).toEqual({ seconds, nanos: ns });
  });

  test.each([
    "",
    "now",
    "2026-11-21",
    "2026-11-21T08:15Z",
    "2026-11-21T08:15:30",
    "2026-11-21 08:15:30Z",
    "2026-11-21T08:15:30 02:00",
    "2026-11-21T08:15:30+0200",
    "2026-11-21T08:15:30+24:00",
    "2026-11-21T08:15:30.Z",
    "2026-11-21T08:15:61Z",
    "+02026-11-21T08:15:30Z",
    "1795248930",
    " 2026-11-21T08:15:30Z",
    "2026-11-21T08:15:30Z\n",
  ])("%j is none", (text) => {
    expect(faultOf(text)).toMatch(/^must be an RFC 3339 time/);
    expect(() => toInstant(text)).toThrow();
  });

  test.each([
    "2026-02-29T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-11-31T00:00:00Z",
    "2026-11-21T24:00:00Z",
    "2026-11-21T08:60:00Z",
    "2026-11-21T08:15:60Z",
  ])("%s does not exist", (text) => {
    expect(faultOf(text)).toBe("must be a time that exists");
  });

  test.each(["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01"])(
    "%s is of a year that no message carries",
    (text) => expect(faultOf(text)).toBe("must be of a year from 1 to 9999"),
  );

  test("is not rounded: what a message cannot carry is refused", () => {
    expect(faultOf("2026-11-21T08:15:30.1234567891Z")).toBe(
      "must have at most 9 digits of a second",
    );
  });

  test("that was told finds itself again, to the nanosecond", () => {
    fc.assert(
      fc.property(instant, (at) => {
        expect(toInstant(toExactTime(at))).toEqual(at);
      }),
    );
  });

  test("is the same by any offset", () => {
    const offset = fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 });
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: LAST - 100_000n }), nanos, offset, (seconds, ns, m) => {
        const local = toExactTime({ seconds: seconds + BigInt(m * 60), nanos: ns }).slice(0, -1);
        const [h, min] = [Math.floor(Math.abs(m) / 60), Math.abs(m) % 60].map((n) =>
          String(n).padStart(2, "0"),
        );
        fc.pre(seconds + BigInt(m * 60) >= 0n);
        expect(toInstant(`${local}${m < 0 ? "-" : "+"}${h}:${min}`)).toEqual({
          seconds,
          nanos: ns,
        });
      }),
    );
  });

  test.each([
    [0, "1970-01-01T00:00:00.000Z"],
    [120_000_000, "1970-01-01T00:00:00.120Z"],
    [120_417_000, "1970-01-01T00:00:00.120417Z"],
    [1, "1970-01-01T00:00:00.000000001Z"],
  ])("of %i nanoseconds is told with as many digits as it takes", (ns, text) => {
    expect(toExactTime({ seconds: 0n, nanos: ns })).toBe(text);
  });
});

test("bounds are in order, to the nanosecond", () => {
  fc.assert(
    fc.property(instant, instant, (a, b) => {
      const isLater = a.seconds > b.seconds || (a.seconds === b.seconds && a.nanos > b.nanos);
      const faults = boundsFault({ since: toExactTime(a), until: toExactTime(b) });
      expect(faults).toEqual(
        isLater ? [{ at: ["since"], message: "must not be after until" }] : [],
      );
    }),
  );
});
