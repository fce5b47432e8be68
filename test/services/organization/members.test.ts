import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemberRole } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { ACTOR, type Bench, callAs, createBench, eventsOf, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

const role = MemberRole.MEMBER;

test("a member is added with one event that shows no address", async () => {
  const { orgId, as } = await bench.organization();
  const { member } = await bench.client.addMember(
    { email: "Ada.Lovelace@Example.org", role: MemberRole.OWNER, displayName: "Ada" },
    as,
  );
  expect(member).toMatchObject({
    email: "Ada.Lovelace@Example.org",
    displayName: "Ada",
    role: MemberRole.OWNER,
  });
  expect(member?.avatarUrl).toBeUndefined();
  const { members } = await bench.client.listMembers({}, as);
  expect(members).toEqual([member]);
  const snapshot = {
    member_id: member?.id,
    user_id: member?.userId,
    role: "owner",
    email: "A***@Example.org",
  };
  await bench.client.removeMember({ memberId: member?.id ?? "" }, as);
  expect((await bench.client.listMembers({}, as)).members).toEqual([]);
  expect(await eventsOf(bench.database, orgId)).toEqual([
    { event_type: "member_added", category: "member", actor: ACTOR, payload: snapshot },
    { event_type: "member_removed", category: "member", actor: ACTOR, payload: snapshot },
  ]);
});

test("a person is the same in every organization, whatever the case of the address", async () => {
  const one = await bench.organization();
  const two = await bench.organization();
  const add = (as: typeof one.as, email: string, displayName?: string) =>
    bench.client.addMember({ email, role, ...(displayName && { displayName }) }, as);
  const first = await add(one.as, "bob@example.org");
  const second = await add(two.as, "BOB@example.org", "Bob");
  expect(second.member).toMatchObject({
    userId: first.member?.userId,
    email: "bob@example.org",
    displayName: "Bob",
  });
  expect(second.member?.id).not.toBe(first.member?.id);
  const third = await bench.organization();
  expect((await add(third.as, "bob@example.org", "Robert")).member?.displayName).toBe("Bob");
});

test("of many adds of one person at once one succeeds, with one event", async () => {
  const { orgId, as } = await bench.organization();
  const emails = Array.from({ length: 10 }, (_, i) => (i % 2 ? "eve@x.org" : "EVE@x.org"));
  const all = await Promise.all(
    emails.map((email) => refusalOf(bench.client.addMember({ email, role }, as))),
  );
  const refused = all.filter((one) => one !== undefined);
  expect(refused).toHaveLength(9);
  for (const { reason } of refused) expect(reason).toBe("MEMBER_ALREADY_EXISTS");
  expect(await eventsOf(bench.database, orgId)).toHaveLength(1);
  const { members } = await bench.client.listMembers({}, as);
  expect(members).toHaveLength(1);
  const memberId = members[0]?.id ?? "";
  const removed = await Promise.all(
    emails.map(() => refusalOf(bench.client.removeMember({ memberId }, as))),
  );
  expect(removed.filter((one) => one === undefined)).toHaveLength(1);
  expect(removed.find((one) => one)?.reason).toBe("MEMBER_NOT_FOUND");
  expect(await eventsOf(bench.database, orgId)).toHaveLength(2);
});

test("one person is added to many organizations at once", async () => {
  const organizations = await Promise.all(Array.from({ length: 8 }, () => bench.organization()));
  const added = await Promise.all(
    organizations.map(({ as }) => bench.client.addMember({ email: "zoe@example.org", role }, as)),
  );
  expect(new Set(added.map(({ member }) => member?.userId)).size).toBe(1);
});

test("another organization's member is not found, and no organization takes none", async () => {
  const { as } = await bench.organization();
  const other = await bench.organization();
  const { member } = await bench.client.addMember({ email: "kim@example.org", role }, as);
  const memberId = member?.id ?? "";
  expect(await refusalOf(bench.client.removeMember({ memberId }, other.as))).toMatchObject({
    reason: "MEMBER_NOT_FOUND",
  });
  const nowhere = callAs(randomUUID());
  expect(
    await refusalOf(bench.client.addMember({ email: "kim@example.org", role }, nowhere)),
  ).toMatchObject({ reason: "ORG_NOT_FOUND" });
  expect((await bench.client.listMembers({}, as)).members).toHaveLength(1);
});

test("an address, a role or a name that does not fit is refused by its field", async () => {
  const { as } = await bench.organization();
  const call = bench.client.addMember({ email: "nobody", displayName: "a\nb" }, as);
  const refused = await refusalOf(call);
  expect(refused?.faults.map(({ field }) => field).sort()).toEqual([
    "display_name",
    "email",
    "role",
  ]);
});

test("pages hold every member once, newest first, and take no foreign cursor", async () => {
  const { orgId, as } = await bench.organization();
  // Several of one microsecond: the id has to break the tie.
  await bench.database.query(
    `WITH u AS (
       INSERT INTO organization.users (id, email)
       SELECT gen_random_uuid(), 'page-' || i || '@example.org' FROM generate_series(1, 45) AS i RETURNING id
     )
     INSERT INTO organization.members (id, org_id, user_id, role, joined_at)
     SELECT gen_random_uuid(), $1::uuid, id, 'viewer',
            timestamptz '2026-01-01' + (row_number() OVER () / 4) * interval '1 microsecond' FROM u RETURNING id`,
    orgId,
  );
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await bench.client.listMembers({ pageSize: 7, pageToken }, as);
    seen.push(...page.members.map(({ id }) => id));
    pageToken = page.nextPageToken ?? "";
  } while (pageToken !== "");
  const rows = await bench.database.query<{ id: string }>(
    "SELECT id FROM organization.members WHERE org_id = $1::uuid ORDER BY joined_at DESC, id DESC",
    orgId,
  );
  expect(seen).toEqual(rows.map(({ id }) => id));
  const { nextPageToken = "", members } = await bench.client.listMembers({}, as);
  expect(members).toHaveLength(20);
  const other = await bench.organization();
  const refused = { reason: "INVALID_REQUEST", faults: [{ field: "cursor" }] };
  for (const call of [
    () => bench.client.listMembers({ pageToken: nextPageToken }, other.as),
    () => bench.client.listEvents({ pageToken: nextPageToken }, as),
    () => bench.client.listMembers({ pageToken: "x" }, as),
  ])
    expect(await refusalOf(call())).toMatchObject(refused);
});
