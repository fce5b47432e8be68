import { afterEach, beforeEach, expect, test } from "vitest";
import { withClient } from "../../../runtime/postgres/connect.ts";
import { startHousekeeping } from "../../../services/organization/housekeeping.ts";
import {
  BATCH,
  EXPIRED_IDEMPOTENCY,
  OLD_EVENTS,
} from "../../../services/organization/store/retention.ts";
import { type Bench, createBench } from "./support.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await createBench();
});
afterEach(() => bench.close());

const OLD = "now() - interval '31 days'";
const YOUNG = "now() - interval '29 days'";
const fail = (error: unknown) => expect.fail(String(error));

const addEvents = (rows: number, at: string) =>
  bench.database.query(
    `INSERT INTO organization.events (id, org_id, category, event_type, actor, payload, timestamp)
     SELECT organization.uuid7(${at}), gen_random_uuid(), 'thing', 'thing_made', '{}', '{}', ${at}
     FROM generate_series(1, $1::int) AS i RETURNING id`,
    rows,
  );
const addRecords = (rows: number, expiresAt: string) =>
  bench.database.query(
    `INSERT INTO organization.idempotency (org_id, key, request_hash, verb, outcome, created_at, expires_at)
     SELECT gen_random_uuid(), 'k' || i, '\\x00', 'create', '{}', now(), ${expiresAt}
     FROM generate_series(1, $1::int) AS i RETURNING key`,
    rows,
  );
const count = (table: string) => async () => {
  const [row] = await bench.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM organization.${table}`,
  );
  return row?.n;
};
const settle = { timeout: 15_000 };

test("what has had its time goes in the background, by several at once, the rest stays", async () => {
  await addEvents(3 * BATCH + 7, OLD);
  await addEvents(5, YOUNG);
  await addRecords(2 * BATCH + 3, "now() - interval '1 second'");
  await addRecords(4, "now() + interval '1 hour'");
  const keepers = Array.from({ length: 3 }, () =>
    startHousekeeping(bench.ctx.store, { eventRetentionDays: 30 }, fail),
  );
  await expect.poll(count("events"), settle).toBe(5);
  await expect.poll(count("idempotency"), settle).toBe(4);
  await Promise.all(keepers.map((keeper) => keeper.stop()));
});

test("without a retention events are kept", async () => {
  await addEvents(3, "timestamptz '2001-01-01'");
  await addRecords(1, "now()");
  const keeper = startHousekeeping(bench.ctx.store, { eventRetentionDays: 0 }, fail);
  await expect.poll(count("idempotency"), settle).toBe(0);
  await keeper.stop();
  expect(await count("events")()).toBe(3);
});

test("an event goes when its last millisecond is past the retention, not before", async () => {
  const cut = "timestamptz '2026-03-01 12:00:00.123Z'";
  const [row] = await bench.database.query<Record<"below" | "above", boolean>>(
    `SELECT bool_and(organization.uuid7(${cut} - interval '1 microsecond') < floor) AS below,
            bool_and(organization.uuid7(${cut}) >= floor AND organization.uuid7(${cut} + interval '999 microseconds') >= floor) AS above
     FROM generate_series(1, 1000), LATERAL (SELECT organization.uuid7_floor(${cut}) AS floor) f`,
  );
  expect(row).toEqual({ below: true, above: true });
});

test("a row that somebody holds is left alone, and holds nothing up", async () => {
  await addEvents(2 * BATCH, OLD);
  await withClient(bench.url, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT id FROM organization.events ORDER BY id LIMIT 1 FOR UPDATE");
    expect(await bench.ctx.store.deleteOldEvents(30)).toBe(BATCH);
    expect(await bench.ctx.store.deleteOldEvents(30)).toBe(BATCH - 1);
    expect(await bench.ctx.store.deleteOldEvents(30)).toBe(0);
    await client.query("COMMIT");
  });
  expect(await bench.ctx.store.deleteOldEvents(30)).toBe(1);
});

test("a record that is used anew while it is deleted stays", async () => {
  const [{ org_id } = { org_id: "" }] = await bench.database.query<{ org_id: string }>(
    `INSERT INTO organization.idempotency (org_id, key, request_hash, verb, outcome, created_at, expires_at)
     VALUES (gen_random_uuid(), 'k', '\\x00', 'create', '{}', now(), now()) RETURNING org_id`,
  );
  const remember = "SELECT organization.remember($1::uuid, 'k', '\\x01', 'create', NULL, '{}')";
  await withClient(bench.url, async (client) => {
    await client.query("BEGIN");
    await client.query(remember, [org_id]);
    expect(await bench.ctx.store.deleteExpiredIdempotency()).toBe(0);
    await client.query("COMMIT");
  });
  expect(await bench.ctx.store.deleteExpiredIdempotency()).toBe(0);
  expect(await count("idempotency")()).toBe(1);
});

test.each([
  ["events", OLD_EVENTS, "(30)", "int", "events_pkey"],
  ["idempotency", EXPIRED_IDEMPOTENCY, "", "", "idempotency_by_expiry"],
])("a batch of %s reads an index, never the table", async (table, sql, given, type, index) => {
  if (table === "events") await addEvents(20_000, YOUNG);
  else await addRecords(20_000, "now() + interval '1 hour'");
  const plan = await withClient(bench.url, async (client) => {
    await client.query(`ANALYZE organization.${table}`);
    await client.query("SET plan_cache_mode = force_generic_plan");
    await client.query(`PREPARE batch ${type && `(${type})`} AS ${sql}`);
    const { rows } = await client.query(`EXPLAIN EXECUTE batch${given}`);
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  });
  expect(plan).toContain(`Index Scan using ${index}`);
  expect(plan).not.toContain("Seq Scan");
});
