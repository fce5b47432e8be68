import { randomUUID } from "node:crypto";
import { createContextValues } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generateApiKey, hashApiKey } from "../../../runtime/api-key.ts";
import { actorKey } from "../../../runtime/rpc/context.ts";
import { ACTOR, type Bench, callAs, createBench, eventsOf, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

const createdEvent = (orgId = "") =>
  bench.database.query(
    "SELECT category, actor, payload FROM organization.events WHERE org_id = $1::uuid AND event_type = 'org_created'",
    orgId,
  );

test("an organization is made with one event, by the operator unless somebody else is named", async () => {
  const { organization } = await bench.client.createOrganization({
    name: "Größe",
    slug: "groesse",
  });
  expect(organization).toMatchObject({ name: "Größe", slug: "groesse", mfaRequired: false });
  expect(organization?.suspendedAt).toBeUndefined();
  expect(await createdEvent(organization?.id)).toEqual([
    {
      category: "org",
      actor: { kind: "system", code: "operator", label: "Operator" },
      payload: { name: "Größe", slug: "groesse" },
    },
  ]);
  const named = await bench.client.createOrganization(
    { name: "B", slug: "bbb" },
    { contextValues: createContextValues().set(actorKey, ACTOR) },
  );
  expect(await createdEvent(named.organization?.id)).toMatchObject([{ actor: ACTOR }]);
  const called = await bench.client.createOrganization(
    { name: "C", slug: "ccc" },
    callAs(randomUUID(), { kind: "api_key", api_key_id: "k", name: "ci" }),
  );
  expect(await createdEvent(called.organization?.id)).toMatchObject([{ actor: { name: "ci" } }]);
});

test("of many with one slug at once one is made, the others are told", async () => {
  const all = await Promise.all(
    Array.from({ length: 10 }, () =>
      refusalOf(bench.client.createOrganization({ name: "Same", slug: "same" })),
    ),
  );
  expect(all.filter((refused) => refused === undefined)).toHaveLength(1);
  for (const refused of all)
    if (refused)
      expect(refused).toMatchObject({ reason: "NAME_ALREADY_EXISTS", metadata: { field: "slug" } });
});

test("every organization has a host volume and a row of its storage, whoever made it and however many tried", async () => {
  await bench.organization();
  const rows = await bench.database.query<{ volumes: number; storage: number }>(
    `SELECT (SELECT count(*)::int FROM sandbox.volumes v WHERE v.org_id = o.id AND v.kind = 'host') AS volumes,
            (SELECT count(*)::int FROM sandbox.storage s WHERE s.org_id = o.id) AS storage
     FROM organization.organizations o`,
  );
  expect(rows.length).toBeGreaterThan(3);
  expect(new Set(rows.map((row) => JSON.stringify(row)))).toEqual(
    new Set(['{"volumes":1,"storage":1}']),
  );
  const [strays] = await bench.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM sandbox.volumes v
     WHERE NOT EXISTS (SELECT FROM organization.organizations o WHERE o.id = v.org_id)`,
  );
  expect(strays).toEqual({ n: 0 });
});

test("a name or slug that does not fit is refused by its field", async () => {
  const bad = bench.client.createOrganization({ name: "a\0", slug: "A" });
  const refused = await refusalOf(bad);
  expect(refused?.faults.map(({ field }) => field)).toEqual(
    expect.arrayContaining(["name", "slug"]),
  );
});

test("all are listed, oldest first", async () => {
  const first = await bench.organization();
  const second = await bench.organization();
  const { organizations } = await bench.client.listOrganizations({});
  expect(organizations.slice(-2).map(({ id }) => id)).toEqual([first.orgId, second.orgId]);
});

test("a suspension and its end change once and write once, however many ask at once", async () => {
  const { orgId, as } = await bench.organization();
  const suspended = await Promise.all(
    Array.from({ length: 8 }, () => bench.client.suspendOrganization({}, as)),
  );
  const at = suspended.map(({ organization }) => organization?.suspendedAt);
  expect(at[0]).toBeDefined();
  for (const one of at) expect(one).toEqual(at[0]);
  const before = (await bench.client.getOrganization({}, as)).organization;
  expect((await bench.client.suspendOrganization({}, as)).organization).toEqual(before);
  await Promise.all(Array.from({ length: 8 }, () => bench.client.resumeOrganization({}, as)));
  const { organization } = await bench.client.resumeOrganization({}, as);
  expect(organization?.suspendedAt).toBeUndefined();
  const payload = { name: organization?.name, slug: organization?.slug };
  expect(await eventsOf(bench.database, orgId)).toEqual([
    { event_type: "org_suspended", category: "org", actor: ACTOR, payload },
    { event_type: "org_resumed", category: "org", actor: ACTOR, payload },
  ]);
});

test("an organization that does not exist is not found", async () => {
  const as = callAs(randomUUID());
  for (const call of [
    () => bench.client.getOrganization({}, as),
    () => bench.client.suspendOrganization({}, as),
    () => bench.client.resumeOrganization({}, as),
  ])
    expect(await refusalOf(call())).toMatchObject({ reason: "ORG_NOT_FOUND" });
});

test("a key says whose it is, and that they are suspended", async () => {
  const { orgId, as } = await bench.organization();
  const { key, secret } = await bench.client.createKey({ name: "ci" }, as);
  const authenticate = () => bench.client.authenticateKey({ keySha256: hashApiKey(secret) });
  expect(await authenticate()).toMatchObject({
    orgId,
    apiKeyId: key?.id,
    apiKeyName: "ci",
    orgSuspended: false,
  });
  expect((await authenticate()).expiresAt).toBeUndefined();
  await bench.client.suspendOrganization({}, as);
  expect(await authenticate()).toMatchObject({ orgId, orgSuspended: true });
  await bench.client.resumeOrganization({}, as);
  expect(await authenticate()).toMatchObject({ orgSuspended: false });
});

test("an unknown key, and a hash of another length, are refused", async () => {
  const unknown = bench.client.authenticateKey({ keySha256: hashApiKey(generateApiKey()) });
  expect(await refusalOf(unknown)).toMatchObject({ reason: "INVALID_API_KEY" });
  const short = bench.client.authenticateKey({ keySha256: new Uint8Array(31) });
  expect(await refusalOf(short)).toMatchObject({ faults: [{ field: "key_sha256" }] });
});
