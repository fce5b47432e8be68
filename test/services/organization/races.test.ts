import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../prisma/database.ts";
import { MemberRole } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { hashApiKey } from "../../../runtime/api-key.ts";
import { withClient } from "../../../runtime/postgres/connect.ts";
import { createStore } from "../../../services/organization/store.ts";
import { type Bench, clientOf, createBench, eventsOf, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

/** Makes the first call in a transaction that commits only once the second one waits for one of its locks. */
async function overlap<A, B>(
  first: (client: Bench["client"]) => Promise<A>,
  second: (client: Bench["client"]) => Promise<B>,
): Promise<[A, B]> {
  return withClient(bench.url, async (connection) => {
    const query: Database["query"] = async (sql, ...values) =>
      (await connection.query(sql, values)).rows;
    await connection.query("BEGIN");
    const store = createStore({ ...bench.database, query });
    const early = await first(clientOf({ ...bench.ctx, store }));
    const late = second(bench.client);
    late.catch(() => undefined);
    await expect.poll(waiting).toBe(1);
    await connection.query("COMMIT");
    return [early, await late];
  });
}

async function waiting(): Promise<number> {
  const [row] = await bench.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  );
  return row?.n ?? -1;
}

async function withKey() {
  const { orgId, as } = await bench.organization();
  const { key, secret } = await bench.client.createKey({ name: "k" }, as);
  const types = async () =>
    (await eventsOf(bench.database, orgId)).slice(1).map(({ event_type }) => event_type);
  return { orgId, as, apiKeyId: key?.id ?? "", secret, types };
}

test("a rotation that met another one makes no key", async () => {
  const { as, apiKeyId, types } = await withKey();
  const rotate = (client: Bench["client"]) => client.rotateKey({ apiKeyId, overlapSecs: 60 }, as);
  const [first, late] = await overlap(rotate, (client) => refusalOf(rotate(client)));
  expect(late?.metadata).toEqual({ from: "rotated", action: "rotate" });
  const { keys } = await bench.client.listKeys({}, as);
  expect(keys).toEqual([first.key, first.replaced]);
  expect(await types()).toEqual(["api_key_rotated"]);
});

test("a rotation that met a revoke makes no key; a revoke that met a rotation revokes the old one", async () => {
  const one = await withKey();
  const [, refused] = await overlap(
    (client) => client.revokeKey({ apiKeyId: one.apiKeyId }, one.as),
    (client) => refusalOf(client.rotateKey({ apiKeyId: one.apiKeyId }, one.as)),
  );
  expect(refused?.metadata).toEqual({ from: "revoked", action: "rotate" });
  expect(await one.types()).toEqual(["api_key_revoked"]);
  const two = await withKey();
  const [rotated, revoked] = await overlap(
    (client) => client.rotateKey({ apiKeyId: two.apiKeyId, overlapSecs: 60 }, two.as),
    (client) => client.revokeKey({ apiKeyId: two.apiKeyId }, two.as),
  );
  expect(revoked.key).toMatchObject({ id: two.apiKeyId, replacedBy: rotated.key?.id });
  expect(revoked.key?.revokedAt).toBeDefined();
  const opens = (secret: string) => bench.client.authenticateKey({ keySha256: hashApiKey(secret) });
  expect(await refusalOf(opens(two.secret))).toMatchObject({ reason: "INVALID_API_KEY" });
  expect((await opens(rotated.secret)).apiKeyId).toBe(rotated.key?.id);
  expect(await two.types()).toEqual(["api_key_rotated", "api_key_revoked"]);
});

test("a revoke that met another one writes nothing, and answers as that one", async () => {
  const { as, apiKeyId, types } = await withKey();
  const revoke = (client: Bench["client"]) => client.revokeKey({ apiKeyId }, as);
  const [first, late] = await overlap(revoke, revoke);
  expect(late.key).toEqual(first.key);
  expect(await types()).toEqual(["api_key_revoked"]);
});

test("a suspension that met another one writes nothing, and so does its end", async () => {
  const { orgId, as } = await bench.organization();
  const suspend = (client: Bench["client"]) => client.suspendOrganization({}, as);
  const resume = (client: Bench["client"]) => client.resumeOrganization({}, as);
  const [suspended, again] = await overlap(suspend, suspend);
  expect(again).toEqual(suspended);
  const [resumed, late] = await overlap(resume, resume);
  expect(late).toEqual(resumed);
  const events = await eventsOf(bench.database, orgId);
  expect(events.map(({ event_type }) => event_type)).toEqual(["org_suspended", "org_resumed"]);
});

test("an add that met another one adds nobody; a removal that met one removes nobody", async () => {
  const { orgId, as } = await bench.organization();
  const add = (client: Bench["client"]) =>
    client.addMember({ email: "ann@example.org", role: MemberRole.ADMIN }, as);
  const [{ member }, refused] = await overlap(add, (client) => refusalOf(add(client)));
  expect(refused?.reason).toBe("MEMBER_ALREADY_EXISTS");
  const remove = (client: Bench["client"]) =>
    client.removeMember({ memberId: member?.id ?? "" }, as);
  const [, late] = await overlap(remove, (client) => refusalOf(remove(client)));
  expect(late?.reason).toBe("MEMBER_NOT_FOUND");
  expect(await eventsOf(bench.database, orgId)).toHaveLength(2);
});

test("a use that met a later one leaves that one's time", async () => {
  const { as, apiKeyId } = await withKey();
  const at = (nanos: number) => ({ seconds: 1_767_225_600n, nanos });
  const record = (nanos: number) => (client: Bench["client"]) =>
    client.recordKeyUse({ uses: [{ apiKeyId, usedAt: at(nanos) }] });
  await overlap(record(9_000_000), record(5_000_000));
  const { keys } = await bench.client.listKeys({}, as);
  expect(keys[0]?.lastUsedAt).toMatchObject(at(9_000_000));
});

test("an answer that met another one is that one", async () => {
  const { orgId, as } = await bench.organization();
  await bench.database.query(
    "SELECT count(*) FROM (SELECT organization.remember($1::uuid, 'k', '\\x00', 'create', NULL, '{}')) AS r",
    orgId,
  );
  const keep = (text: string) => (client: Bench["client"]) =>
    client.keepAnswer({ idempotencyKey: "k", answer: new TextEncoder().encode(text) }, as);
  const both = await overlap(keep("first"), keep("late"));
  expect(both.map(({ answer }) => Buffer.from(answer).toString())).toEqual(["first", "first"]);
});
