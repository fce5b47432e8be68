import { afterAll, beforeAll, expect, test } from "vitest";
import { type Bench, createBench, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

const bytes = (text: string) => new TextEncoder().encode(text);
const remember = (orgId: string, key: string) =>
  bench.database.query(
    "SELECT count(*) FROM (SELECT organization.remember($1::uuid, $2, '\\x00', 'create', NULL, '{}')) AS r",
    orgId,
    key,
  );

test("of many answers at once the first stays, and all are told it", async () => {
  const { orgId, as } = await bench.organization();
  await remember(orgId, "k 1");
  const all = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      bench.client.keepAnswer({ idempotencyKey: "k 1", answer: bytes(`answer ${i}`) }, as),
    ),
  );
  const texts = all.map(({ answer }) => new TextDecoder().decode(answer));
  expect(texts[0]).toMatch(/^answer \d$/);
  expect(new Set(texts).size).toBe(1);
  const late = await bench.client.keepAnswer({ idempotencyKey: "k 1", answer: bytes("late") }, as);
  expect(late.answer).toEqual(all[0]?.answer);
});

test("without a record, with another organization's, or with one that expired, it is not kept", async () => {
  const { orgId, as } = await bench.organization();
  const other = await bench.organization();
  await remember(orgId, "k");
  const keep = (call: typeof as, idempotencyKey: string) =>
    refusalOf(bench.client.keepAnswer({ idempotencyKey, answer: bytes("a") }, call));
  expect(await keep(other.as, "k")).toMatchObject({ reason: "IDEMPOTENCY_KEY_UNKNOWN" });
  expect(await keep(as, "unknown")).toMatchObject({ reason: "IDEMPOTENCY_KEY_UNKNOWN" });
  await bench.database.query(
    "UPDATE organization.idempotency SET expires_at = now() WHERE key = 'k' RETURNING key",
  );
  expect(await keep(as, "k")).toMatchObject({ reason: "IDEMPOTENCY_KEY_UNKNOWN" });
  // The key can be used anew, and has no answer of its former life.
  await remember(orgId, "k");
  expect(await keep(as, "k")).toBeUndefined();
});

test("a key that no client may send is refused by its field", async () => {
  const { as } = await bench.organization();
  for (const idempotencyKey of ["", "ü", "a\0", "x".repeat(256)])
    expect(
      await refusalOf(bench.client.keepAnswer({ idempotencyKey, answer: bytes("a") }, as)),
    ).toMatchObject({ reason: "INVALID_REQUEST", faults: [{ field: "idempotency_key" }] });
});
