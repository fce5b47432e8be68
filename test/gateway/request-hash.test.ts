import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PublicError } from "../../gateway/errors.ts";
import { requestSha256 } from "../../gateway/http/request-hash.ts";

const hex = (body: unknown, url = "/v1/x", method = "POST") =>
  Buffer.from(requestSha256(method, url, body)).toString("hex");

/** The same value, with the keys of its objects the other way round. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, at]): [string, unknown] => [key, turned(at)]);
  return Object.fromEntries(entries.reverse());
}

const json = fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.parse(JSON.stringify(value)));

describe("the hash of a request", () => {
  test("is of 32 bytes", () => expect(requestSha256("POST", "/", {})).toHaveLength(32));

  test("is the same for a body that was written anew", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(hex(turned(value))).toBe(hex(JSON.parse(JSON.stringify(value, null, 2))));
      }),
    );
  });

  test("is another for another body", () => {
    const form = (value: unknown) => JSON.stringify(sorted(value));
    fc.assert(
      fc.property(json, json, (a, b) => {
        fc.pre(form(a) !== form(b));
        expect(hex(a)).not.toBe(hex(b));
      }),
    );
  });

  test.each([
    [[1, 2], [12]],
    [["a", "b"], ["ab"]],
    [["a,b"], ["a", "b"]],
    [[[], []], [[[]]]],
    [[[1], 2], [[1, 2]]],
    [{ a: { b: 1 } }, { a: {}, b: 1 }],
    [{ a: null }, {}],
    [{ a: "1" }, { a: 1 }],
    [[{ a: 1, b: 2 }], [{ a: 1 }, { b: 2 }]],
  ])("tells %j from %j", (a, b) => expect(hex(a)).not.toBe(hex(b)));

  test("takes no body for an empty one", () => expect(hex(undefined)).toBe(hex({})));

  test("is of method, path and query too", () => {
    const all = [hex({}), hex({}, "/v1/y"), hex({}, "/v1/x?a"), hex({}, "/v1/x", "PATCH")];
    expect(new Set(all).size).toBe(4);
  });

  test("reads a large file to its end", () => {
    const content = Array.from({ length: 300_000 }, (_, i) => i % 256);
    const other = content.with(-1, 77);
    expect(hex({ content: [...content] })).toBe(hex({ content }));
    expect(hex({ content: other })).not.toBe(hex({ content }));
    expect(hex({ content: content.slice(0, -1) })).not.toBe(hex({ content }));
  });

  test("is refused where nesting has no end", () => {
    const nested = JSON.parse(`${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}`);
    expect(() => hex({ future: nested })).toThrow(
      expect.objectContaining<Partial<PublicError>>({ code: "invalid_request" }),
    );
    expect(hex(JSON.parse(`${"[".repeat(200)}${"]".repeat(200)}`))).toHaveLength(64);
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([key, at]): [string, unknown] => [key, sorted(at)])
    .sort(([a], [b]) => (a < b ? -1 : 1));
}
