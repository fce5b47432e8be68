import fc from "fast-check";
import type { Operation } from "./document.ts";
import { oddKey, oddText, oddValue } from "./odd.ts";
import { oddHeaderValue, oddUrlPart } from "./odd-http.ts";

/** One thing that is done to a good request; `at` chooses where, among what there is. */
export type Spoil =
  | { kind: "replace"; at: number; value: unknown }
  | { kind: "remove"; at: number }
  | { kind: "add"; at: number; key: string; value: unknown }
  | { kind: "text"; at: number; how: BrokenText }
  | { kind: "contentType"; value: string | undefined }
  | { kind: "noBody" }
  | { kind: "body"; text: string }
  | { kind: "path"; at: number; value: string }
  | { kind: "query"; at: number; value: string }
  | { kind: "moreQuery"; text: string }
  | { kind: "url"; how: "slash" | "double" | "case" | "beyond" | "fragment" }
  | { kind: "cursor"; at: number; value: string }
  | { kind: "method"; value: string }
  | { kind: "header"; name: string; value: string }
  | { kind: "key"; value: string | undefined };

export type BrokenText = (typeof BROKEN)[number];
const BROKEN = [
  "cut",
  "insert",
  "bom",
  "latin1",
  "comma",
  "twice",
  "nan",
  "deep",
  "behind",
] as const;

const at = fc.nat({ max: 1000 });
const constant = fc.constant;
const of = <K extends Spoil["kind"], F extends object>(
  kind: K,
  fields: { [P in keyof F]: fc.Arbitrary<F[P]> },
) => fc.record({ kind: constant(kind), ...fields }) as fc.Arbitrary<Extract<Spoil, { kind: K }>>;

const inBody: fc.Arbitrary<Spoil>[] = [
  of("replace", { at, value: oddValue }),
  of("replace", { at, value: oddValue }),
  of("remove", { at }),
  of("add", { at, key: oddKey, value: oddValue }),
  of("text", { at, how: fc.constantFrom(...BROKEN) }),
  of("contentType", {
    value: fc.constantFrom(
      undefined,
      "",
      "text/plain",
      "application/json;charset=utf-16",
      "APPLICATION/JSON",
      "application/jsonx",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/json, text/plain",
      "a/b/c",
      "é",
    ),
  }),
  of("noBody", {}),
];

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"];

const anywhere: fc.Arbitrary<Spoil>[] = [
  of("moreQuery", {
    text: fc.oneof(
      fc.constantFrom("&&&", "=", "?a", "%", "%zz=1", "__proto__=1", "limit[]=1", "a=".repeat(400)),
      oddUrlPart.map((part) => `${part}=${part}`),
    ),
  }),
  of("url", { how: fc.constantFrom("slash", "double", "case", "beyond", "fragment") }),
  of("method", { value: fc.constantFrom(...METHODS) }),
  of("header", {
    name: fc.constantFrom(
      "X-Request-Id",
      "Accept",
      "Range",
      "If-Match",
      "If-None-Match",
      "Expect",
      "X-Forwarded-For",
      "Forwarded",
      "traceparent",
      "Content-Encoding",
      "Host",
      "x-http-method-override",
    ),
    value: oddHeaderValue,
  }),
  of("header", { name: constant("Idempotency-Key"), value: oddHeaderValue }),
  // Seldom: an address that is wrong about keys too often is refused for a while.
  of("key", {
    value: fc.constantFrom(
      undefined,
      "",
      "Bearer",
      "Bearer ",
      "Basic YTpi",
      "Bearer é",
      "bearer x",
    ),
  }),
];

/** What can be done to a request of this operation. */
export function spoilOf({ parameters, body, method }: Operation): fc.Arbitrary<Spoil> {
  const has = (part: string) => parameters.some((parameter) => parameter.in === part);
  const headers = parameters.filter((parameter) => parameter.in === "header");
  const names = headers.map(({ name }) => name);
  const own: fc.Arbitrary<Spoil>[] = [
    ...(body
      ? inBody
      : [of("body", { text: fc.constantFrom("{", "{}", "x", "x".repeat(100_000)) })]),
    ...(has("path") ? [of("path", { at, value: oddUrlPart })] : []),
    ...(has("query")
      ? [of("query", { at, value: queryText }), of("cursor", { at, value: oddText })]
      : []),
    ...(names.length > 0
      ? [of("header", { name: fc.constantFrom(...names), value: oddHeaderValue })]
      : []),
  ];
  const weight = method === "GET" ? 3 : 4;
  return fc.oneof({ weight, arbitrary: fc.oneof(...own) }, fc.oneof(...anywhere));
}

const queryText = fc.oneof(
  fc.constantFrom(
    "",
    "0",
    "101",
    "-1",
    "+1",
    "1e2",
    "0x10",
    "1.0",
    " 1",
    "9007199254740992",
    "99999999999999999999",
    "TRUE",
    "1",
    "{}",
    "[]",
    "null",
    '{"a":1}',
    '{"a":"b","a":"c"}',
    '{"__proto__":"x"}',
    '{"":""}',
    "{",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "9999-12-31T23:59:59-01:00",
    "0001-01-01T00:00:00+01:00",
    "2026-11-01T00:00:00 00:00",
    "2016-12-31T23:59:60Z",
    "2026-11-01",
  ),
  oddText.filter((text) => text.isWellFormed()),
);
