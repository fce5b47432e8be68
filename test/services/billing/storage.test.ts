import { randomUUID } from "node:crypto";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { GIB, MIB } from "../../../services/billing/domain/metrics.ts";
import {
  as,
  type BillingBench,
  createBillingBench,
  ended,
  insertVolume,
  measured,
  refusalOf,
} from "./support.ts";

let bench: BillingBench;
let caller: Caller;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());
beforeEach(async () => {
  caller = await bench.organization();
  bench.setNow("2026-04-20T00:00:00Z");
});
afterEach(() => bench.setNow(undefined));

const at = (text: string) => timestampFromDate(new Date(text));
const april = { since: at("2026-04-01T00:00:00Z"), until: at("2026-05-01T00:00:00Z") };

/** A volume of the caller with these measurements, and its end if it has one. */
async function holding(samples: [at: string, bytes: bigint][], end?: string): Promise<string> {
  const volumeId = await insertVolume(bench.database, {
    orgId: caller.orgId,
    name: `v-${randomUUID().slice(0, 8)}`,
    deleted: end !== undefined,
  });
  for (const [at, bytes] of samples)
    await measured(bench.database, { orgId: caller.orgId, volumeId, at, bytes });
  if (end !== undefined) await ended(bench.database, volumeId, end);
  return volumeId;
}

const usage = (window: Partial<typeof april> = {}) => bench.client.getUsage({ window }, as(caller));
const quantity = async (window?: Partial<typeof april>) => {
  const line = (await usage(window)).lines.find(({ name }) => name === "storage");
  return line?.quantity;
};
/** Day, volume and GiB hours. */
const daysOf = async (window: Partial<typeof april> = {}, of: Caller = caller) => {
  const { rows } = await bench.client.listStorageUsage({ window }, as(of));
  return rows.map(({ day, volumeId, mibSeconds }) => [
    day && timestampDate(day).toISOString().slice(0, 10),
    volumeId,
    mibSeconds / 1024 / 3600,
  ]);
};

test("nothing measured is no storage, and no zero", async () => {
  const answer = await usage();
  expect(answer.lines[3]).toMatchObject({ name: "storage", unit: "gib_hours", quantity: 0 });
  expect(answer.storageGib).toBeUndefined();
  expect(await bench.client.listStorageUsage({}, as(caller))).toMatchObject({
    rows: [],
    volumes: [],
  });
});

test("a volume holds until now what it held last", async () => {
  const id = await holding([["2026-04-18T12:00:00Z", 3n * GIB]]);
  expect(await daysOf()).toEqual([
    ["2026-04-18", id, 36],
    ["2026-04-19", id, 72],
  ]);
  expect((await usage()).storageGib).toBe(3);
  bench.setNow("2026-04-20T06:00:00Z");
  expect(await quantity()).toBe(36 + 72 + 18);
});

test("between two measurements it grows evenly, however far they are apart", async () => {
  // From 0 to 48 GiB in 48 hours: an average of 6, 24 and 42 GiB on 12, 24 and 12 hours.
  const id = await holding([
    ["2026-04-10T12:00:00Z", 0n],
    ["2026-04-12T12:00:00Z", 48n * GIB],
  ]);
  bench.setNow("2026-04-12T12:00:00Z");
  expect(await daysOf()).toEqual([
    ["2026-04-10", id, 6 * 12],
    ["2026-04-11", id, 24 * 24],
    ["2026-04-12", id, 42 * 12],
  ]);
  expect(await quantity()).toBe((48 * 48) / 2);
});

test("it shrinks evenly too, to nothing", async () => {
  await holding([
    ["2026-04-10T12:00:00Z", 48n * GIB],
    ["2026-04-12T12:00:00Z", 0n],
  ]);
  expect(await quantity()).toBe((48 * 48) / 2);
  expect((await usage()).storageGib).toBe(0);
});

test("a measurement that comes late, or again, changes nothing", async () => {
  const id = await holding([
    ["2026-04-10T00:00:00Z", GIB],
    ["2026-04-11T00:00:00Z", GIB],
    ["2026-04-10T12:00:00Z", 1_000n * GIB],
    ["2026-04-11T00:00:00Z", 1_000n * GIB],
    ["2026-04-10T00:00:00Z", GIB],
  ]);
  bench.setNow("2026-04-11T00:00:00Z");
  expect(await daysOf()).toEqual([["2026-04-10", id, 24]]);
});

test("a measurement a microsecond later has no length, and its bytes hold from then on", async () => {
  const id = await holding([
    ["2026-04-10T00:00:00.000001Z", GIB],
    ["2026-04-10T00:00:00.000002Z", 2n * GIB],
  ]);
  bench.setNow("2026-04-10T01:00:00Z");
  expect(await daysOf()).toEqual([["2026-04-10", id, 2]]);
});

test("midnight belongs to the day that begins", async () => {
  const id = await holding([["2026-04-10T23:00:00Z", GIB]], "2026-04-11T00:00:00Z");
  const first = await holding([["2026-04-11T00:00:00Z", GIB]], "2026-04-11T01:00:00Z");
  expect(await daysOf()).toEqual([
    ["2026-04-10", id, 1],
    ["2026-04-11", first, 1],
  ]);
});

test("a session's time zone moves no midnight", async () => {
  const volumeId = randomUUID();
  const values = `'${caller.orgId}', '${volumeId}', 1073741824`;
  await bench.database.query(
    `WITH zone AS MATERIALIZED (SELECT set_config('TimeZone', 'Pacific/Kiritimati', true) AS set)
     SELECT billing.accrue_storage(${values}, '2026-04-10T23:00:00Z')::text AS done FROM zone WHERE set <> ''`,
  );
  await bench.database.query(
    `WITH zone AS MATERIALIZED (SELECT set_config('TimeZone', 'Pacific/Kiritimati', true) AS set)
     SELECT billing.accrue_storage(${values}, '2026-04-11T01:00:00Z')::text AS done FROM zone WHERE set <> ''`,
  );
  bench.setNow("2026-04-11T01:00:00Z");
  expect(await daysOf()).toEqual([
    ["2026-04-10", volumeId, 1],
    ["2026-04-11", volumeId, 1],
  ]);
});

describe("a deleted volume", () => {
  test("keeps what it accrued up to its end, and leaves the directory", async () => {
    const gone = await holding([["2026-04-10T00:00:00Z", 2n * GIB]], "2026-04-10T12:00:00Z");
    const kept = await holding([["2026-04-10T00:00:00Z", GIB]]);
    bench.setNow("2026-04-11T00:00:00Z");
    expect(new Set(await daysOf())).toEqual(
      new Set([
        ["2026-04-10", gone, 24],
        ["2026-04-10", kept, 24],
      ]),
    );
    const { volumes } = await bench.client.listStorageUsage({}, as(caller));
    expect(volumes.map(({ id }) => id)).toEqual([kept]);
    expect((await usage()).storageGib).toBe(1);
  });

  test("is no storage any more, which is not the same as never measured", async () => {
    await holding([["2026-04-10T00:00:00Z", GIB]], "2026-04-10T12:00:00Z");
    expect((await usage()).storageGib).toBe(0);
  });

  test("that was never measured ends without a trace", async () => {
    await holding([], "2026-04-10T12:00:00Z");
    expect(await daysOf()).toEqual([]);
    expect((await usage()).storageGib).toBeUndefined();
  });

  test("ends once, however often that is told", async () => {
    const id = await holding([["2026-04-10T00:00:00Z", GIB]], "2026-04-10T12:00:00Z");
    await ended(bench.database, id, "2026-04-11T12:00:00Z");
    expect(await daysOf()).toEqual([["2026-04-10", id, 12]]);
  });

  test("that ends at its last measurement, or before it, accrues nothing more", async () => {
    const id = await holding(
      [
        ["2026-04-10T00:00:00Z", GIB],
        ["2026-04-10T12:00:00Z", GIB],
      ],
      "2026-04-10T06:00:00Z",
    );
    expect(await daysOf()).toEqual([["2026-04-10", id, 12]]);
  });
});

test("the host volume is in the directory without a name, others with theirs; unused ones are not", async () => {
  const host = await insertVolume(bench.database, { orgId: caller.orgId, name: null });
  const cache = await insertVolume(bench.database, { orgId: caller.orgId, name: "cache" });
  await insertVolume(bench.database, { orgId: caller.orgId, name: "unused" });
  for (const volumeId of [host, cache])
    await measured(bench.database, {
      orgId: caller.orgId,
      volumeId,
      at: "2026-04-10T00:00:00Z",
      bytes: 1n,
    });
  const { volumes } = await bench.client.listStorageUsage({ window: april }, as(caller));
  expect(volumes.map(({ id, name }) => [id, name]).sort()).toEqual(
    [
      [host, undefined],
      [cache, "cache"],
    ].sort(),
  );
});

test("another organization's volumes are in no sum, row or directory", async () => {
  const mine = await holding([["2026-04-10T00:00:00Z", GIB]]);
  const other = await bench.organization();
  const volumeId = randomUUID();
  await measured(bench.database, {
    orgId: other.orgId,
    volumeId,
    at: "2026-04-10T00:00:00Z",
    bytes: 5n,
  });
  // A row that names another's volume does not tell its name.
  await bench.database.query(
    `INSERT INTO billing.storage_accruals (org_id, day, volume_id, start_ms, end_ms, byte_ms)
     VALUES ($1::uuid, '2026-04-09', $2::uuid, 0, 1, 1) RETURNING day`,
    other.orgId,
    mine,
  );
  const answer = await bench.client.listStorageUsage({}, as(other));
  expect(new Set(answer.rows.map((row) => row.volumeId))).toEqual(new Set([mine, volumeId]));
  expect(answer.volumes).toEqual([]);
  expect((await bench.client.getUsage({}, as(other))).storageGib).toBe(5 / Number(GIB));
  expect((await usage()).storageGib).toBe(1);
  expect(new Set((await daysOf()).map(([, id]) => id))).toEqual(new Set([mine]));
});

describe("a window that cuts a day", () => {
  test("takes the part that its time is of what was accrued there", async () => {
    await holding(
      [
        ["2026-04-10T06:00:00Z", 0n],
        ["2026-04-10T18:00:00Z", 24n * GIB],
      ],
      "2026-04-10T18:00:00Z",
    );
    // 144 GiB hours between 6 and 18 o'clock.
    const within = (since: string, until: string) =>
      quantity({ since: at(since), until: at(until) });
    expect(await within("2026-04-10T06:00:00Z", "2026-04-10T09:00:00Z")).toBe(36);
    expect(await within("2026-04-10T00:00:00Z", "2026-04-10T06:00:00Z")).toBe(0);
    expect(await within("2026-04-10T17:00:00Z", "2026-04-12T00:00:00Z")).toBe(12);
    expect(await within("2026-04-10T12:00:00Z", "2026-04-10T12:00:00Z")).toBe(0);
  });

  test("is rounded so that windows that adjoin add up to the unit", async () => {
    // 7 bytes for 3 ms are 21 units.
    const id = await holding([["2026-04-10T00:00:00Z", 7n]], "2026-04-10T00:00:00.003Z");
    await bench.database.query(
      "UPDATE billing.storage_accruals SET byte_ms = 20 WHERE volume_id = $1::uuid RETURNING day",
      id,
    );
    const start = Date.parse("2026-04-10T00:00:00Z");
    const span = (from: number, to: number) => ({ since: start + from, until: start + to });
    const held = async (from: number, to: number) => {
      const parts = { before: span(0, 0), within: span(from, to) };
      const days = await bench.ctx.store.sumStorage(caller.orgId, start + 10, parts);
      return days.reduce((sum, { use }) => sum + use.storage, 0n);
    };
    expect([await held(0, 1), await held(1, 2), await held(2, 3)]).toEqual([6n, 7n, 7n]);
  });
});

test("a bill: what is beyond the pool of the month, rounded once", async () => {
  const plan = {
    name: "stored",
    currency: "EUR",
    limits: { includedStorageGib: 10 },
    prices: { storageGibHour: 27_000n },
  };
  await bench.client.setPlan({ plan });
  await bench.client.assignPlan({ plan: "stored" }, as(caller));
  bench.setNow("2026-05-02T00:00:00Z");
  // 40 GiB all April, and one that grows from 0 to 72 GiB in its last 10 days: 28,800 and 8,640 GiB hours.
  await holding([["2026-04-01T00:00:00Z", 40n * GIB]], "2026-05-01T00:00:00Z");
  await holding(
    [
      ["2026-04-21T00:00:00Z", 0n],
      ["2026-05-01T00:00:00Z", 72n * GIB],
    ],
    "2026-05-01T00:00:00Z",
  );
  const cents = async (since: string, until: string) => {
    const { lines } = await usage({ since: at(since), until: at(until) });
    return Number(lines[3]?.amountCents);
  };
  // 7,200 of 37,440 are included; the rest is 30,240 at 0.027 cents.
  expect(await cents("2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z")).toBe(816);
  // 960 a day at 40 GiB: the pool is used up in the middle of the 8th day.
  expect(await cents("2026-04-01T00:00:00Z", "2026-04-08T12:00:00Z")).toBe(0);
  expect(await cents("2026-04-08T12:00:00Z", "2026-04-09T12:00:00Z")).toBe(26);
  expect(await cents("2026-05-01T00:00:00Z", "2026-05-02T00:00:00Z")).toBe(0);
});

test("quantities of any size are told as near as a double comes", async () => {
  const huge = 2n ** 62n;
  const id = await holding([["2026-04-10T00:00:00Z", huge]], "2026-04-11T00:00:00Z");
  const { rows } = await bench.client.listStorageUsage({}, as(caller));
  expect(rows).toMatchObject([{ volumeId: id, mibSeconds: Number(huge / MIB) * 86_400 }]);
});

test("quotas have no storage that is used, and do not ask for it", async () => {
  await holding([["2026-04-10T00:00:00Z", GIB]]);
  let asked = 0;
  const { sumStorage } = bench.ctx.store;
  bench.ctx.store.sumStorage = (...args) => {
    asked += 1;
    return sumStorage(...args);
  };
  try {
    await bench.client.getQuotas({}, as(caller));
    expect(asked).toBe(0);
    await usage();
    expect(asked).toBe(1);
  } finally {
    bench.ctx.store.sumStorage = sumStorage;
  }
});

test("a window that is too long is refused", async () => {
  const window = { since: at("2026-01-01T00:00:00Z"), until: at("2026-04-04T00:00:00Z") };
  expect(await refusalOf(bench.client.listStorageUsage({ window }, as(caller)))).toEqual({
    reason: "INVALID_REQUEST",
    fields: ["since"],
  });
});
