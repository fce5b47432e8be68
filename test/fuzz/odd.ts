import fc from "fast-check";

const LONG = 20_000;

/** Strings that have broken something somewhere. */
export const oddText = fc.constantFrom(
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "\udc00x",
  "\u{10ffff}",
  "\ufeff",
  "\u202eabc",
  "é",
  "e\u0301",
  "İ",
  "ß",
  "..",
  "../../etc/passwd",
  "/",
  "//",
  "/../",
  "a/./b",
  "%00",
  "%2e%2e%2f",
  "\\",
  "'; DROP TABLE sandbox.sandboxes; --",
  '"',
  "$(id)",
  "{{7*7}}",
  "\r\nX-Odd: 1",
  "__proto__",
  "constructor",
  "toString",
  "null",
  "true",
  "5",
  "1e400",
  "NaN",
  "2026-02-30T00:00:00Z",
  "2026-11-21T24:00:00Z",
  "9999-12-31T23:59:60Z",
  "-000001-01-01T00:00:00Z",
  "00000000-0000-0000-0000-000000000000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
  "x".repeat(129),
  "x".repeat(256),
  "x".repeat(LONG),
  "\u{1f600}".repeat(300),
  "a".repeat(70).concat("-"),
  "-",
  "a--b",
  "[::1]:5000/x",
  "a@sha256:00",
  "0.0.0.0/33",
  "fe80::1%eth0",
  "*.",
);

const oddNumber = fc.constantFrom(
  0,
  -0,
  -1,
  1,
  0.5,
  65_536,
  2_147_483_647,
  2_147_483_648,
  -2_147_483_649,
  4_294_967_296,
  Number.MAX_SAFE_INTEGER,
  Number.MAX_SAFE_INTEGER + 1,
  2 ** 63,
  -(2 ** 63),
  1e21,
  1e308,
  5e-324,
);

const deep = (depth: number) => {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
};

const oddShape = fc.constantFrom<unknown>(
  null,
  true,
  false,
  [],
  {},
  [null],
  [[]],
  [{}],
  { "": "" },
  { a: { b: { c: [] } } },
  { length: -1 },
  { type: "oci" },
  { type: "__proto__" },
  { type: ["named"] },
  { mode: null },
  deep(64),
  deep(900),
  Array.from({ length: 300 }, () => ({})),
  Array.from({ length: 3_000 }, (_, i) => i),
);

/** JSON values that fit hardly anywhere, or nearly. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  oddText,
  oddNumber,
  oddShape,
  fc.jsonValue(),
);

/** Names of members that nobody asked for. */
export const oddKey = fc.constantFrom(
  "x",
  "",
  "\0",
  "\ud800",
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "then",
  "toJSON",
  "id",
  "org_id",
  "status",
  "a b\r\nc",
  "k".repeat(5_000),
  "ключ",
);
