import { randomUUID } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { WatchKeysResponse } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { KeyFeed } from "../../../services/organization/key-feed.ts";
import { type Bench, createBench } from "./support.ts";

let bench: Bench;
let unreachable = false;
const watches: AbortController[] = [];

beforeEach(async () => {
  unreachable = false;
  bench = await createBench({
    throughUrl: (url) => (unreachable ? "postgresql://127.0.0.1:1/nothing" : url),
  });
});
afterEach(async () => {
  for (const watch of watches.splice(0)) watch.abort();
  await bench.close();
});

/** What a watch has been told by now, and how it ended. */
interface Heard {
  events: WatchKeysResponse["event"][];
  /** Of each event that is `current`: since when that is certain, a little before the truth. */
  provenAt: (number | undefined)[];
  ended: Promise<ConnectError | undefined>;
  hangUp(): void;
}

/** More than a message may be under way in memory. */
const MARGIN_MS = 100;

function watch(client = bench.client): Heard {
  const hangUp = new AbortController();
  watches.push(hangUp);
  const events: Heard["events"] = [];
  const provenAt: Heard["provenAt"] = [];
  const read = async () => {
    for await (const { event } of client.watchKeys({}, { signal: hangUp.signal })) {
      events.push(event);
      const ageMs = event.case === "current" ? event.value.ageMs : undefined;
      provenAt.push(ageMs === undefined ? undefined : performance.now() - ageMs - MARGIN_MS);
    }
  };
  const ended = read().then(
    () => undefined,
    (error: unknown) => ConnectError.from(error),
  );
  return { events, provenAt, ended, hangUp: () => hangUp.abort() };
}

const changesOf = ({ events }: Heard) =>
  events.flatMap((event) => (event.case === "changed" ? [event.value] : []));
const isCurrent = ({ events }: Heard) => events.some((event) => event.case === "current");
const patient = { timeout: 15_000 };

async function watching(client = bench.client): Promise<Heard> {
  const heard = watch(client);
  await expect.poll(() => isCurrent(heard), patient).toBe(true);
  return heard;
}

/** Until a watch is told of a change that is made now: they are told in the order of their commits. */
async function caughtUp(heard: Heard): Promise<void> {
  const last = await bench.organization();
  await bench.client.suspendOrganization({}, last.as);
  const told = () => changesOf(heard).some(({ orgId }) => orgId === last.orgId);
  await expect.poll(told, patient).toBe(true);
}

/** What a watch was told of an organization. */
const changesTo = (heard: Heard, orgId: string) =>
  changesOf(heard).filter((change) => change.orgId === orgId);

const listeners = () =>
  bench.database.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity WHERE datname = current_database()
       AND (query LIKE 'LISTEN%' OR query LIKE 'NOTIFY%')`,
  );

test("every change of a key and of a suspension is told, and nothing else", async () => {
  const { orgId, as } = await bench.organization();
  const heard = await watching();
  expect(heard.events[0]?.case).toBe("current");
  const { key } = await bench.client.createKey({ name: "k" }, as);
  const apiKeyId = key?.id ?? "";
  const rotated = await bench.client.rotateKey({ apiKeyId, overlapSecs: 60 }, as);
  await bench.client.revokeKey({ apiKeyId }, as);
  await bench.client.revokeKey({ apiKeyId }, as);
  await bench.client.suspendOrganization({}, as);
  await bench.client.suspendOrganization({}, as);
  await bench.client.resumeOrganization({}, as);
  const usedAt = { seconds: 1_767_225_600n, nanos: 0 };
  await bench.client.recordKeyUse({ uses: [{ apiKeyId, usedAt }] });
  await bench.database.query(
    "UPDATE organization.organizations SET name = 'Other' WHERE id = $1::uuid RETURNING id",
    orgId,
  );
  await caughtUp(heard);
  const told = changesTo(heard, orgId).map((change) => [change.orgId, change.apiKeyId]);
  const fresh = rotated.key?.id;
  // One statement made the new key and ended the old one: either may be told first.
  expect(told.slice(1, 3).sort()).toEqual(
    [
      [orgId, apiKeyId],
      [orgId, fresh],
    ].sort(),
  );
  expect([told[0], ...told.slice(3)]).toEqual([
    [orgId, apiKeyId],
    [orgId, apiKeyId],
    [orgId, ""],
    [orgId, ""],
  ]);
});

test("a row that is changed or deleted by hand is told as well", async () => {
  const { orgId, as } = await bench.organization();
  const { key } = await bench.client.createKey({ name: "k" }, as);
  const heard = await watching();
  for (const sql of [
    "UPDATE organization.api_keys SET name = 'other' WHERE id = $1::uuid RETURNING id",
    "DELETE FROM organization.api_keys WHERE id = $1::uuid RETURNING id",
  ])
    await bench.database.query(sql, key?.id);
  await caughtUp(heard);
  const change = expect.objectContaining({ orgId, apiKeyId: key?.id });
  expect(changesTo(heard, orgId)).toEqual([change, change]);
});

test("a `current` is told behind every change that it speaks of", async () => {
  const { as } = await bench.organization();
  const heard = await watching();
  for (let round = 0; round < 3; round += 1) {
    const { key } = await bench.client.createKey({ name: "k" }, as);
    const committed = performance.now();
    const covers = () => heard.events.findIndex((_, i) => (heard.provenAt[i] ?? 0) > committed);
    await expect.poll(covers, patient).toBeGreaterThan(0);
    const told = heard.events.slice(0, covers());
    expect(told.some((event) => event.case === "changed" && event.value.apiKeyId === key?.id)).toBe(
      true,
    );
  }
});

test("what is not committed is not told, and an undone change never", async () => {
  const { orgId } = await bench.organization();
  const heard = await watching();
  const insert = `INSERT INTO organization.api_keys (id, org_id, name, key_sha256, prefix, last_four)
    VALUES (gen_random_uuid(), '${orgId}', 'k', sha256('x'), 'p_', 'xxxx') RETURNING id`;
  await expect(
    bench.database.query(`WITH k AS (${insert}) SELECT 1 / (count(*) - 1) FROM k`),
  ).rejects.toThrow();
  await caughtUp(heard);
  expect(changesTo(heard, orgId)).toEqual([]);
});

test("a hundred watchers share one connection, which is made for the first of them", async () => {
  expect(await listeners()).toHaveLength(0);
  const all = Array.from({ length: 100 }, () => watch());
  await expect.poll(() => all.every(isCurrent), patient).toBe(true);
  expect(await listeners()).toHaveLength(1);
  const { orgId, as } = await bench.organization();
  await bench.client.suspendOrganization({}, as);
  await expect.poll(() => all.every((heard) => changesOf(heard).length === 1), patient).toBe(true);
  expect(changesOf(all[99] as Heard)[0]).toMatchObject({ orgId, apiKeyId: "" });
});

test("a lost connection ends every watch as Unavailable; it is taken up again", async () => {
  const { as } = await bench.organization();
  const all = await Promise.all([watching(), watching()]);
  const [listener] = await listeners();
  unreachable = true;
  await bench.database.query("SELECT pg_terminate_backend($1::int)", listener?.pid);
  for (const { ended } of all) expect((await ended)?.code).toBe(Code.Unavailable);
  expect((await watch().ended)?.code).toBe(Code.Unavailable);
  await expect.poll(() => bench.errors.length, patient).toBeGreaterThan(2);
  unreachable = false;
  await expect
    .poll(async () => {
      const heard = watch();
      await Promise.race([heard.ended, expect.poll(() => isCurrent(heard)).toBe(true)]).catch(
        () => {},
      );
      return isCurrent(heard);
    }, patient)
    .toBe(true);
  const heard = await watching();
  await bench.client.suspendOrganization({}, as);
  await expect.poll(() => changesOf(heard).length, patient).toBe(1);
});

test("a connection that falls silent counts as lost", async () => {
  const heard = await watching();
  const [listener] = await listeners();
  process.kill(listener?.pid ?? 0, "SIGSTOP");
  try {
    expect((await heard.ended)?.code).toBe(Code.Unavailable);
  } finally {
    process.kill(listener?.pid ?? 0, "SIGCONT");
  }
});

test("who hangs up frees the watch; the service's end ends the others", async () => {
  const [gone, stays] = await Promise.all([watching(), watching()]);
  gone.hangUp();
  expect((await gone.ended)?.code).toBe(Code.Canceled);
  await bench.ctx.keyWatch.stop();
  expect((await stays.ended)?.code).toBe(Code.Unavailable);
  expect((await watch().ended)?.code).toBe(Code.Unavailable);
  await expect.poll(async () => (await listeners()).length, patient).toBe(0);
  expect(bench.errors).toEqual([]);
});

test("a watcher that does not read is ended, and one that reads a little late misses nothing", async () => {
  const feed = new KeyFeed(100);
  feed.proven(performance.now());
  const change = () => ({ orgId: randomUUID(), apiKeyId: "" });
  const { signal } = new AbortController();
  const [late, lazy] = [feed.watch(signal), feed.watch(signal)];
  for (const one of [late, lazy])
    expect((await one.next()).value).toMatchObject({ kind: "current" });
  const first = Array.from({ length: 90 }, change);
  for (const one of first) feed.changed(one);
  for (const one of first)
    expect((await late.next()).value).toEqual({ kind: "changed", change: one });
  for (let i = 0; i < 200; i += 1) feed.changed(change());
  await expect(lazy.next()).rejects.toMatchObject({ reason: "SERVICE_UNAVAILABLE" });
});

test("what is heard between a watch and the first proof is told behind a `current` that is older", async () => {
  const feed = new KeyFeed();
  feed.changed({ orgId: "before", apiKeyId: "" });
  const watched = feed.watch(new AbortController().signal);
  const first = watched.next();
  const change = { orgId: "during", apiKeyId: "" };
  feed.changed(change);
  const at = performance.now() + 1_000;
  feed.proven(at);
  const { value: current } = await first;
  expect(current).toMatchObject({ kind: "current" });
  expect(current?.kind === "current" && current.ageMs).toBeGreaterThanOrEqual(0);
  expect((await watched.next()).value).toEqual({ kind: "changed", change });
  // Only now what the proof covers.
  expect((await watched.next()).value).toMatchObject({
    kind: "current",
    ageMs: expect.any(Number),
  });
});
