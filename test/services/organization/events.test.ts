import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ListEventsRequest } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import { withClient } from "../../../runtime/postgres/connect.ts";
import { type EventQuery, eventPage } from "../../../services/organization/store/events.ts";
import { ACTOR, type Bench, callAs, createBench, refusalOf } from "./support.ts";

let bench: Bench;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());

const BASE = 1_767_225_600n; // 2026-01-01
const after = (us: number, nanos = 0) => ({ seconds: BASE, nanos: us * 1_000 + nanos });

/** Events of an organization that is nobody's, three to a microsecond; every fifth is a `thing_made`. */
async function fill(rows: number): Promise<string> {
  const orgId = randomUUID();
  await bench.database.query(
    `INSERT INTO organization.events (id, org_id, category, event_type, actor, payload, timestamp)
     SELECT gen_random_uuid(), $1::uuid, 'thing', CASE i % 5 WHEN 0 THEN 'thing_made' ELSE 'thing_seen' END,
            $3::jsonb, jsonb_build_object('i', i), timestamptz '2026-01-01Z' + (i / 3) * interval '1 microsecond'
     FROM generate_series(0, $2::int - 1) AS i RETURNING id`,
    orgId,
    rows,
    JSON.stringify(ACTOR),
  );
  return orgId;
}

async function order(orgId: string, where = "true"): Promise<string[]> {
  const rows = await bench.database.query<{ id: string }>(
    `SELECT id FROM organization.events WHERE org_id = $1::uuid AND ${where} ORDER BY timestamp DESC, id DESC`,
    orgId,
  );
  return rows.map(({ id }) => id);
}

type Query = Partial<Pick<ListEventsRequest, "pageSize" | "eventType">> & {
  since?: ReturnType<typeof after>;
  until?: ReturnType<typeof after>;
};

async function walk(orgId: string, query: Query, between: () => Promise<unknown> = async () => {}) {
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await bench.client.listEvents({ ...query, pageToken }, callAs(orgId));
    seen.push(...page.events.map(({ id }) => id));
    pageToken = page.nextPageToken ?? "";
    await between();
  } while (pageToken !== "");
  return seen;
}

test("pages hold every event once, newest first, while events are added and removed", async () => {
  const orgId = await fill(1_000);
  const doomed = await order(orgId, "(payload->>'i')::int % 7 = 0");
  const before = (await order(orgId)).filter((id) => !doomed.includes(id));
  const seen = await walk(orgId, { pageSize: 30 }, async () => {
    await bench.database.query(
      `SELECT organization.append_event($1::uuid, 'thing_seen', $2::jsonb, '{}', clock_timestamp()) AS id`,
      orgId,
      JSON.stringify(ACTOR),
    );
    await bench.database.query(
      "DELETE FROM organization.events WHERE id = ANY($1::uuid[]) RETURNING id",
      doomed.splice(0, 5),
    );
  });
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.filter((id) => before.includes(id))).toEqual(before);
});

test("filters hold on every page; both ends of a window are in it, to the microsecond", async () => {
  const orgId = await fill(300);
  expect(await walk(orgId, { pageSize: 7, eventType: "thing_made" })).toEqual(
    await order(orgId, "event_type = 'thing_made'"),
  );
  expect(await walk(orgId, { eventType: "unheard_of" })).toEqual([]);
  const window =
    "timestamp BETWEEN '2026-01-01 00:00:00.000020Z' AND '2026-01-01 00:00:00.000030Z'";
  const expected = await order(orgId, window);
  expect(expected).toHaveLength(33);
  expect(await walk(orgId, { pageSize: 10, since: after(20), until: after(30) })).toEqual(expected);
  // Finer than the log's own times.
  expect(await walk(orgId, { since: after(19, 1), until: after(30, 999) })).toEqual(expected);
  expect(
    await walk(orgId, { eventType: "thing_made", since: after(20), until: after(20) }),
  ).toEqual(
    await order(orgId, "event_type = 'thing_made' AND timestamp = '2026-01-01 00:00:00.000020Z'"),
  );
});

test("an event's own time finds it again", async () => {
  const orgId = await fill(100);
  const { events } = await bench.client.listEvents({ pageSize: 50 }, callAs(orgId));
  const { id, timestamp } = events[40] ?? {};
  const bounds = { since: timestamp ?? after(0), until: timestamp ?? after(0) };
  const found = await bench.client.listEvents(bounds, callAs(orgId));
  expect(found.events.map((event) => event.id)).toContain(id);
  expect(found.events).toHaveLength(3);
});

test("a cursor is bound to its filters and its organization", async () => {
  const orgId = await fill(50);
  const { nextPageToken: pageToken = "" } = await bench.client.listEvents({}, callAs(orgId));
  for (const [query, org] of [
    [{ eventType: "thing_made" }, orgId],
    [{ since: after(1) }, orgId],
    [{ until: after(1) }, orgId],
    [{}, randomUUID()],
  ] as const)
    expect(
      await refusalOf(bench.client.listEvents({ ...query, pageToken }, callAs(org))),
    ).toMatchObject({ reason: "INVALID_REQUEST", faults: [{ field: "cursor" }] });
  const forged = bench.client.listEvents(
    { pageToken: `${pageToken.slice(0, -3)}AAA` },
    callAs(orgId),
  );
  expect(await refusalOf(forged)).toMatchObject({ faults: [{ field: "cursor" }] });
});

test("a window that ends before it begins, or lies outside the calendar, is refused by its field", async () => {
  const as = callAs(randomUUID());
  const backwards = bench.client.listEvents({ since: after(2), until: after(1) }, as);
  expect(await refusalOf(backwards)).toMatchObject({
    reason: "INVALID_REQUEST",
    faults: [{ field: "since" }],
  });
  const outside = bench.client.listEvents({ until: { seconds: 253_402_300_800n, nanos: 0 } }, as);
  expect(await refusalOf(outside)).toMatchObject({ faults: [{ field: "until" }] });
  const last = { seconds: 253_402_300_799n, nanos: 999_999_999 };
  expect((await bench.client.listEvents({ since: after(0), until: last }, as)).events).toEqual([]);
});

test("an event is found by its id, in its organization alone", async () => {
  const orgId = await fill(3);
  const { events } = await bench.client.listEvents({ pageSize: 1 }, callAs(orgId));
  const [event] = events;
  expect(event).toMatchObject({
    orgId,
    category: "thing",
    actor: ACTOR,
    payload: { i: expect.any(Number) },
  });
  const eventId = event?.id ?? "";
  expect((await bench.client.getEvent({ eventId }, callAs(orgId))).event).toEqual(event);
  for (const [id, org] of [
    [eventId, randomUUID()],
    [randomUUID(), orgId],
  ] as const)
    expect(await refusalOf(bench.client.getEvent({ eventId: id }, callAs(org)))).toMatchObject({
      reason: "EVENT_NOT_FOUND",
    });
});

interface Plan {
  "Index Name"?: string;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: Plan[];
}

const NOTHING = { limit: 20, after: null, eventType: null, sinceUs: null, untilUs: null };

/** How PostgreSQL runs the statement of a page that it has planned without knowing its parameters, or knowing them. */
async function explain(mode: string, query: Partial<EventQuery> & { orgId: string }) {
  const { sql, values } = eventPage({ ...NOTHING, ...query });
  return withClient(bench.url, async (client) => {
    await client.query(`SET plan_cache_mode = ${mode}`);
    await client.query(`PREPARE page AS ${sql}`);
    const given = values.map((value) => client.escapeLiteral(String(value))).join(", ");
    const explained = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page(${given})`;
    const { rows } = await client.query<{ "QUERY PLAN": [{ Plan: Plan }] }>(explained);
    const plan = rows[0]?.["QUERY PLAN"][0].Plan;
    let scan = plan;
    while (scan?.Plans) scan = scan.Plans[0];
    const blocks = (plan?.["Shared Hit Blocks"] ?? 0) + (plan?.["Shared Read Blocks"] ?? 0);
    return { blocks, index: scan?.["Index Name"] };
  });
}

test.each(["force_generic_plan", "force_custom_plan"])(
  "a page costs the same however deep it is, with and without a filter (%s)",
  async (mode) => {
    const orgId = await fill(30_000);
    await fill(30_000);
    await bench.database.query("ANALYZE organization.events");
    const deep = { us: String(BASE * 1_000_000n + 100n), id: randomUUID() };
    const sinceUs = BASE * 1_000_000n;
    for (const [filter, index] of [
      [{}, "events_org_id_timestamp_id_idx"],
      [{ eventType: "thing_made" }, "events_by_type"],
      [{ eventType: "unheard_of" }, "events_by_type"],
      [{ sinceUs, untilUs: sinceUs + 9_000n }, "events_org_id_timestamp_id_idx"],
    ] as const) {
      const first = await explain(mode, { orgId, ...filter });
      const last = await explain(mode, { orgId, ...filter, after: deep });
      expect([first.index, last.index]).toEqual([index, index]);
      // 21 rows and the way down the index.
      expect(Math.max(first.blocks, last.blocks)).toBeLessThan(40);
    }
  },
);

// One on the time alone is cheaper in the planner's eyes, and leads through everybody's events to those of a quiet
// organization; so retention goes by the primary key.
test("no index is there by which a page could lead through other organizations' events", async () => {
  const rows = await bench.database.query<{ index: string }>(
    `SELECT i.indexrelid::regclass::text AS index
     FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
     WHERE i.indrelid = 'organization.events'::regclass AND NOT i.indisprimary AND a.attname <> 'org_id'`,
  );
  expect(rows).toEqual([]);
});
