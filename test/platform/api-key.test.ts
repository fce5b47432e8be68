import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { describeApiKey, generateApiKey, hashApiKey, isApiKey } from "../../runtime/api-key.ts";

test("a generated key is a prefix, 32 base62 characters and a checksum", () => {
  const keys = Array.from({ length: 100 }, generateApiKey);
  for (const key of keys) expect(key).toMatch(/^sgt_live_[0-9A-Za-z]{38}$/);
  expect(keys.every(isApiKey)).toBe(true);
  expect(new Set(keys).size).toBe(keys.length);
});

test("the checksum is CRC-32 in base62, so that others can check keys too", () => {
  // CRC-32 of 32 zeros is 0xa0f292d0.
  expect(isApiKey(`sgt_live_${"0".repeat(32)}2wjyrI`)).toBe(true);
});

test("one wrong character shows", () => {
  const key = generateApiKey();
  for (let at = "sgt_live_".length; at < key.length; at += 1) {
    const other = key[at] === "a" ? "b" : "a";
    expect(isApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
  }
});

test.each([
  ["msb_0123456789abcdef", true],
  ["msb_live_0123456789-abcdef", true],
  [`abc_${"x".repeat(124)}`, true],
  [`abc_${"x".repeat(125)}`, false],
  ["msb_012345678", false],
  ["MSB_0123456789abcdef", false],
  ["0123456789abcdef0123", false],
  ["msb_0123456789 abcdef", false],
  ["sgt_live_0123456789abcdef", false],
])("another maker's key: %s is %s", (text, good) => {
  expect(isApiKey(text)).toBe(good);
});

test("the hash is plain SHA-256", () => {
  const sha256 = createHash("sha256").update("msb_0123456789abcdef").digest("hex");
  expect(hashApiKey("msb_0123456789abcdef").toString("hex")).toBe(sha256);
});

test("what may be shown of it is prefix and last four", () => {
  expect(describeApiKey(`sgt_live_${"a".repeat(38)}`)).toEqual({
    prefix: "sgt_live_",
    lastFour: "aaaa",
  });
  expect(describeApiKey("msb_0123456789abcdef")).toEqual({ prefix: "msb_", lastFour: "cdef" });
});
