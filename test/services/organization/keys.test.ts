import { randomUUID } from "node:crypto";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hashApiKey, isApiKey } from "../../../runtime/api-key.ts";
import { ACTOR, type Bench, callAs, createBench, eventsOf, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

const HOUR_MS = 3_600_000;
const inMs = (ms: number) => timestampFromDate(new Date(Date.now() + ms));
const opens = async (secret: string) =>
  (await refusalOf(bench.client.authenticateKey({ keySha256: hashApiKey(secret) }))) === undefined;

test("a key is answered once, opens, and is in no event and no row", async () => {
  const { orgId, as } = await bench.organization();
  const expiresAt = inMs(HOUR_MS);
  const { key, secret } = await bench.client.createKey({ name: "ci", expiresAt }, as);
  expect(isApiKey(secret)).toBe(true);
  expect(await opens(secret)).toBe(true);
  expect(key).toMatchObject({
    name: "ci",
    prefix: "sgt_live_",
    lastFour: secret.slice(-4),
    expiresAt,
  });
  expect(key?.lastUsedAt ?? key?.revokedAt ?? key?.replacedBy).toBeUndefined();
  expect((await bench.client.listKeys({}, as)).keys).toEqual([key]);
  expect(await eventsOf(bench.database, orgId)).toEqual([
    {
      event_type: "api_key_created",
      category: "api_key",
      actor: ACTOR,
      payload: {
        api_key_id: key?.id,
        name: "ci",
        prefix: "sgt_live_",
        last_four: secret.slice(-4),
        expires_at: timestampDate(expiresAt).toISOString(),
      },
    },
  ]);
  const { replaced, secret: next } = await bench.client.rotateKey({ apiKeyId: key?.id ?? "" }, as);
  expect(replaced?.id).toBe(key?.id);
  for (const table of ["api_keys", "events"]) {
    const rows = await bench.database.query(
      `SELECT to_jsonb(t)::text AS row FROM organization.${table} t`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const planted of [secret, next]) expect(JSON.stringify(rows)).not.toContain(planted);
  }
});

test("an expiry in the past, and an organization that does not exist, are refused", async () => {
  const { orgId, as } = await bench.organization();
  const late = bench.client.createKey({ name: "late", expiresAt: inMs(-1) }, as);
  expect(await refusalOf(late)).toMatchObject({
    reason: "INVALID_REQUEST",
    faults: [{ field: "expires_at" }],
  });
  const never = { seconds: 253_402_300_800n, nanos: 0 };
  const unthinkable = bench.client.createKey({ name: "late", expiresAt: never }, as);
  expect(await refusalOf(unthinkable)).toMatchObject({ faults: [{ field: "expires_at" }] });
  expect(await eventsOf(bench.database, orgId)).toEqual([]);
  const nowhere = bench.client.createKey({ name: "k" }, callAs(randomUUID()));
  expect(await refusalOf(nowhere)).toMatchObject({ reason: "ORG_NOT_FOUND" });
});

test("a key stops with its expiry", async () => {
  const { as } = await bench.organization();
  const { key, secret } = await bench.client.createKey({ name: "k", expiresAt: inMs(HOUR_MS) }, as);
  await bench.database.query(
    "UPDATE organization.api_keys SET expires_at = now() - interval '1 second' WHERE id = $1::uuid RETURNING id",
    key?.id,
  );
  expect(await opens(secret)).toBe(false);
  const rotation = bench.client.rotateKey({ apiKeyId: key?.id ?? "" }, as);
  expect(await refusalOf(rotation)).toMatchObject({
    reason: "INVALID_STATE_TRANSITION",
    metadata: { from: "expired", action: "rotate" },
  });
});

test("of many revokes at once one changes and writes, all answer alike", async () => {
  const { orgId, as } = await bench.organization();
  const { key, secret } = await bench.client.createKey({ name: "k" }, as);
  const apiKeyId = key?.id ?? "";
  const all = await Promise.all(
    Array.from({ length: 10 }, () => bench.client.revokeKey({ apiKeyId }, as)),
  );
  expect(all[0]?.key?.revokedAt).toBeDefined();
  for (const one of all) expect(one.key).toEqual(all[0]?.key);
  expect(await opens(secret)).toBe(false);
  const events = await eventsOf(bench.database, orgId);
  expect(events.map(({ event_type }) => event_type)).toEqual([
    "api_key_created",
    "api_key_revoked",
  ]);
  expect(events[1]).toMatchObject({ payload: { api_key_id: apiKeyId, name: "k" }, actor: ACTOR });
  const rotation = bench.client.rotateKey({ apiKeyId }, as);
  expect(await refusalOf(rotation)).toMatchObject({
    metadata: { from: "revoked", action: "rotate" },
  });
});

test("another organization's key is not found", async () => {
  const { as } = await bench.organization();
  const other = await bench.organization();
  const { key, secret } = await bench.client.createKey({ name: "k" }, as);
  const apiKeyId = key?.id ?? "";
  for (const call of [
    () => bench.client.revokeKey({ apiKeyId }, other.as),
    () => bench.client.rotateKey({ apiKeyId }, other.as),
  ])
    expect(await refusalOf(call())).toMatchObject({ reason: "KEY_NOT_FOUND" });
  expect((await bench.client.listKeys({}, other.as)).keys).toEqual([]);
  expect(await opens(secret)).toBe(true);
});

test("a rotated key stays good for the overlap, and says what took its place", async () => {
  const { orgId, as } = await bench.organization();
  const expiresAt = inMs(10 * HOUR_MS);
  const old = await bench.client.createKey({ name: "ci", expiresAt }, as);
  const { key, secret, replaced } = await bench.client.rotateKey(
    { apiKeyId: old.key?.id ?? "", overlapSecs: 3_600 },
    as,
  );
  expect(key).toMatchObject({ name: "ci", expiresAt, lastFour: secret.slice(-4) });
  expect(replaced).toMatchObject({ id: old.key?.id, replacedBy: key?.id });
  const [created, ends] = [key?.createdAt, replaced?.expiresAt].map(
    (at) => at && timestampDate(at),
  );
  expect((ends?.getTime() ?? 0) - (created?.getTime() ?? 0)).toBe(HOUR_MS);
  expect([await opens(old.secret), await opens(secret)]).toEqual([true, true]);
  expect((await bench.client.listKeys({}, as)).keys).toEqual([key, replaced]);
  const events = await eventsOf(bench.database, orgId);
  expect(events.map(({ event_type }) => event_type)).toEqual([
    "api_key_created",
    "api_key_rotated",
  ]);
  expect(events[1]?.payload).toMatchObject({
    api_key_id: old.key?.id,
    name: "ci",
    replaced_by: key?.id,
    replaced_by_last_four: secret.slice(-4),
    expires_at: ends?.toISOString(),
  });
  const again = bench.client.rotateKey({ apiKeyId: old.key?.id ?? "" }, as);
  expect(await refusalOf(again)).toMatchObject({
    reason: "INVALID_STATE_TRANSITION",
    metadata: { from: "rotated", action: "rotate" },
  });
});

test("an overlap never prolongs a key's life, and none ends it at once", async () => {
  const { as } = await bench.organization();
  const expiresAt = inMs(HOUR_MS);
  const brief = await bench.client.createKey({ name: "brief", expiresAt }, as);
  const kept = await bench.client.rotateKey(
    { apiKeyId: brief.key?.id ?? "", overlapSecs: 7_776_000 },
    as,
  );
  expect(kept.replaced?.expiresAt).toEqual(expiresAt);
  const lasting = await bench.client.createKey({ name: "lasting" }, as);
  const ended = await bench.client.rotateKey({ apiKeyId: lasting.key?.id ?? "" }, as);
  expect([await opens(lasting.secret), await opens(ended.secret)]).toEqual([false, true]);
  expect(ended.key?.expiresAt).toBeUndefined();
});

test("of many rotations at once one makes a key", async () => {
  const { orgId, as } = await bench.organization();
  const { key } = await bench.client.createKey({ name: "k" }, as);
  const rotate = () => bench.client.rotateKey({ apiKeyId: key?.id ?? "", overlapSecs: 60 }, as);
  const all = await Promise.all(Array.from({ length: 12 }, () => refusalOf(rotate())));
  expect(all.filter((one) => one === undefined)).toHaveLength(1);
  for (const one of all)
    if (one) expect(one.metadata).toEqual({ from: "rotated", action: "rotate" });
  expect((await bench.client.listKeys({}, as)).keys).toHaveLength(2);
  expect(await eventsOf(bench.database, orgId)).toHaveLength(2);
});

test("a rotation and a revoke at once never leave the key good", async () => {
  const { orgId, as } = await bench.organization();
  for (let round = 0; round < 10; round += 1) {
    const { key, secret } = await bench.client.createKey({ name: "k" }, as);
    const apiKeyId = key?.id ?? "";
    await Promise.all([
      refusalOf(bench.client.rotateKey({ apiKeyId, overlapSecs: 60 }, as)),
      bench.client.revokeKey({ apiKeyId }, as),
    ]);
    expect(await opens(secret)).toBe(false);
  }
  const types = (await eventsOf(bench.database, orgId)).map(({ event_type }) => event_type);
  expect(types.filter((type) => type === "api_key_revoked")).toHaveLength(10);
  const { keys } = await bench.client.listKeys({}, as);
  expect(keys).toHaveLength(10 + types.filter((type) => type === "api_key_rotated").length);
});

test("uses are recorded in batches: the latest stays, none is in the future", async () => {
  const { as } = await bench.organization();
  const made = await Promise.all(
    ["a", "b", "c"].map((name) => bench.client.createKey({ name }, as)),
  );
  const [a = "", b = "", c = ""] = made.map(({ key }) => key?.id);
  const at = (ms: number) => timestampFromDate(new Date(Date.UTC(2026, 0, 1) + ms));
  const record = (...uses: [string, ReturnType<typeof at>][]) =>
    bench.client.recordKeyUse({ uses: uses.map(([apiKeyId, usedAt]) => ({ apiKeyId, usedAt })) });
  await record([a, at(5)], [a, at(9)], [b, at(1)], [randomUUID(), at(1)], [a, at(7)]);
  await record([a, at(3)], [b, at(2)], [c, inMs(HOUR_MS)]);
  await record();
  const used = new Map(
    (await bench.client.listKeys({}, as)).keys.map(({ id, lastUsedAt }) => [id, lastUsedAt]),
  );
  expect([used.get(a), used.get(b)]).toEqual([at(9), at(2)]);
  const last = used.get(c);
  expect(last && timestampDate(last).getTime()).toBeLessThan(Date.now() + HOUR_MS / 2);
  await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      record(
        ...(i % 2 ? [a, b, c] : [c, b, a]).map((id): [string, typeof last & {}] => [
          id,
          at(100 + i),
        ]),
      ),
    ),
  );
  const { keys } = await bench.client.listKeys({}, as);
  expect(keys.find(({ id }) => id === a)?.lastUsedAt).toEqual(at(119));
});
