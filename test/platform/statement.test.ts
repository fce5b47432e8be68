import { afterAll, beforeAll, expect, test } from "vitest";
import { type Database, openDatabase, refusal } from "../../prisma/database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let at: TestDatabase;
let database: Database;
beforeAll(async () => {
  at = await createTestDatabase();
  database = openDatabase(at.url);
});
afterAll(async () => {
  await database.close();
  await at.close();
});

const TIME = "2026-02-03 04:05:06.789+00";
const BIG = 2n ** 62n;

test.each([
  ["1::int4", 1],
  [`${BIG}::int8`, BIG],
  ["1.5::float8", 1.5],
  ["12.50::numeric", "12.50"],
  ["true", true],
  ["'a b'::text", "a b"],
  ["'0190a9f2-0000-7000-8000-000000000001'::uuid", "0190a9f2-0000-7000-8000-000000000001"],
  [`'{"a": [1, null]}'::jsonb`, { a: [1, null] }],
  ["'null'::json", null],
  [`'${TIME}'::timestamptz`, new Date(TIME)],
  ["'2026-02-03'::date", new Date("2026-02-03")],
  ["'\\x00ff'::bytea", new Uint8Array([0, 255])],
  [`ARRAY[${BIG}, NULL]::int8[]`, [BIG, null]],
  ["ARRAY['a', NULL]::text[]", ["a", null]],
  [`ARRAY['${TIME}']::timestamptz[]`, [new Date(TIME)]],
  [`ARRAY['{"a": 1}']::jsonb[]`, [{ a: 1 }]],
  ["NULL::int8", null],
  ["NULL::text[]", null],
])("%s comes out as what it is", async (sql, expected) => {
  expect(await database.query(`SELECT ${sql} AS value`)).toEqual([{ value: expected }]);
});

test.each([
  ["int8", BIG],
  ["int4", 7],
  ["float8", 0.25],
  ["bool", false],
  ["text", 'it\'s {"quoted"}\\'],
  ["timestamptz", new Date(TIME)],
  ["bytea", new Uint8Array([1, 0, 254])],
  ["int8[]", [BIG, null, -1n]],
  ["text[]", ["a,b", 'c"d', "{}", "NULL", ""]],
  ["timestamptz[]", [new Date(TIME)]],
  ["text[]", []],
  ["text", null],
])("a %s goes in and comes out the same", async (type, value) => {
  expect(await database.query(`SELECT $1::${type} AS value`, value)).toEqual([{ value }]);
});

test("JSON goes in as text, and what is undefined as null", async () => {
  const json = { a: 1, b: ["c"] };
  expect(
    await database.query(
      "SELECT $1::jsonb AS json, $2::int AS nothing",
      JSON.stringify(json),
      undefined,
    ),
  ).toEqual([{ json, nothing: null }]);
});

test("a refused statement says its code and constraint", async () => {
  await database.query("CREATE TABLE once (n int CONSTRAINT only_once UNIQUE)");
  const insert = () => database.query("INSERT INTO once VALUES (1)");
  await insert();
  const error = await insert().catch((cause: unknown) => cause);
  expect(refusal(error)).toEqual({ code: "23505", constraint: "only_once" });
});

test("closed twice is closed once", async () => {
  const other = openDatabase(at.url);
  await other.query("SELECT 1");
  await Promise.all([other.close(), other.close()]);
  await expect(other.query("SELECT 1")).rejects.toThrow();
});
