import { timestampDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import {
  formatPrice,
  parseDuration,
  parseFuture,
  parseLimit,
  parsePast,
  parsePrice,
} from "../../cli/values.ts";

test.each([
  ["0", 0],
  ["90s", 90],
  ["30m", 1_800],
  ["12h", 43_200],
  ["30d", 2_592_000],
  ["2w", 1_209_600],
])("the duration %s", (text, secs) => {
  expect(parseDuration(text)).toBe(secs);
});

test.each(["", "1", "d", "1.5h", "-1h", "1y", " 1h"])("'%s' is no duration", (text) => {
  expect(() => parseDuration(text)).toThrow("It is a duration");
});

test.each([
  ["2026-12-31", "2026-12-31T00:00:00.000Z"],
  ["2026-12-31T12:00:00Z", "2026-12-31T12:00:00.000Z"],
  ["2026-12-31T12:00:00.25+02:00", "2026-12-31T10:00:00.250Z"],
  ["2028-02-29", "2028-02-29T00:00:00.000Z"],
])("the moment %s", (text, iso) => {
  expect(parseFuture(text).toISOString()).toBe(iso);
  expect(timestampDate(parsePast(text)).toISOString()).toBe(iso);
});

test("a moment of the past is exact, as the audit log's times are", () => {
  const at = "2026-12-31T12:00:00.000123Z";
  expect(parsePast(at).nanos).toBe(123_000);
});

test.each(["2026-02-29", "2026-13-01", "2026-12-31T12:00:00", "tomorrow", "12/31/2026", "2026"])(
  "'%s' is no moment",
  (text) => {
    expect(() => parseFuture(text)).toThrow("It is RFC 3339");
  },
);

test("a duration counts from now, ahead or back", () => {
  const before = Date.now();
  const [ahead, back] = [parseFuture("1h").getTime(), timestampDate(parsePast("1h")).getTime()];
  const after = Date.now();
  expect(ahead).toBeGreaterThanOrEqual(before + 3_600_000);
  expect(ahead).toBeLessThanOrEqual(after + 3_600_000);
  expect(back).toBeGreaterThanOrEqual(before - 3_600_000);
  expect(back).toBeLessThanOrEqual(after - 3_600_000);
});

test.each([
  ["vcpu_hour=0", 0n, "0"],
  ["vcpu_hour=0.05", 5_000_000n, "0.05"],
  ["memory_gib_hour=0.00000001", 1n, "0.00000001"],
  ["disk_gib_hour=10000", 1_000_000_000_000n, "10000"],
  ["storage_gib_hour=12.30", 1_230_000_000n, "12.3"],
])("the price %s is exact, there and back", (text, millionths, shown) => {
  const [name, value] = parsePrice(text);
  expect(value).toBe(millionths);
  expect(text.startsWith(`${name}=`)).toBe(true);
  expect(formatPrice(value)).toBe(shown);
});

test.each([
  "vcpu_hour=10000.1",
  "vcpu_hour=10001",
  "vcpu_hour=-1",
  "vcpu_hour=",
  "gpu_hour=1",
  "1",
])("'%s' is no price", (text) => {
  expect(() => parsePrice(text)).toThrow();
});

test("limits are integers, or none", () => {
  expect(parseLimit("max_sandboxes=0")).toEqual(["max_sandboxes", 0]);
  expect(parseLimit("max_sandboxes=2147483647")).toEqual(["max_sandboxes", 2_147_483_647]);
  expect(parseLimit("included_vcpu_hours=unlimited")).toEqual(["included_vcpu_hours", null]);
  for (const text of ["max_sandboxes=2147483648", "max_sandboxes=null", "maxSandboxes=1", "=1"])
    expect(() => parseLimit(text)).toThrow();
});
