import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { getUsage } from "../../../services/billing/domain/get-usage.ts";
import { listStorageUsage } from "../../../services/billing/domain/list-usage.ts";
import { type AccruedDays, accrue, DAY } from "../../support/storage-accrual.ts";
import { type BillingBench, createBillingBench, ended, insertVolume, measured } from "./support.ts";

// Random measurements of random volumes over random windows, beside a model that knows no SQL: it keeps the stretches
// between measurements, and sums what lies on a day.

const FROM = Date.parse("2027-12-20T00:00:00Z");
const DAYS = 60;

interface Step {
  volume: number;
  /** Microseconds since 1970. */
  at: number;
  /** Null: it is deleted, and another is made under its name. */
  bytes: bigint | null;
}

const instant = fc
  .oneof(
    fc.integer({ min: 0, max: DAYS * DAY * 1_000 }),
    // Near a midnight, and often the same.
    fc
      .tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: -2_000, max: 2_000 }))
      .map(([day, off]) => day * DAY * 1_000 + off),
    fc.integer({ min: 0, max: 8 }).map((n) => n * 5 * DAY * 1_000),
  )
  .map((us) => FROM * 1_000 + us);
const bytes = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 63n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 42n }),
);
const step: fc.Arbitrary<Step> = fc.record({
  volume: fc.nat(2),
  at: instant,
  bytes: fc.option(bytes, { freq: 8 }),
});

const rfc = (us: number) => {
  const ms = Math.floor(us / 1_000);
  const rest = String(us - ms * 1_000).padStart(3, "0");
  return new Date(ms).toISOString().replace("Z", `${rest}Z`);
};
const toMs = (us: number) => Math.floor(us / 1_000);

/** One volume, from its first measurement to its end. */
class Model {
  /** By day since 1970. */
  readonly days: AccruedDays = new Map();
  #last: { at: number; bytes: bigint } | undefined;
  /** Twice the area under all stretches, which needs no rounding. */
  twice = 0n;
  stretches = 0;

  measure(at: number, bytes: bigint): void {
    const last = this.#last;
    if (last && at < last.at) return;
    // What is told of the same moment again takes its place.
    if (last && at > last.at) this.#stretch(toMs(last.at), toMs(at), last.bytes, bytes);
    this.#last = { at, bytes };
  }

  end(at: number): void {
    if (this.#last) this.measure(at, this.#last.bytes);
    this.#last = undefined;
  }

  #stretch(t0: number, t1: number, from: bigint, to: bigint): void {
    this.twice += (from + to) * BigInt(t1 - t0);
    this.stretches += 1;
    if (t0 < t1) accrue(this.days, [t0, from], [t1, to]);
  }

  /** What of [since, until) is on one day, where the volume goes on as it was last measured. */
  within(day: number, since: number, until: number, now: number): bigint {
    const held = this.days.get(day);
    let sum = 0n;
    if (held && since < until) {
      const length = BigInt(held.end - held.start);
      const before = (t: number) =>
        (held.byteMs * BigInt(Math.min(Math.max(t, held.start), held.end) - held.start)) / length;
      sum += before(until) - before(since);
    }
    if (!this.#last) return sum;
    const from = Math.max(toMs(this.#last.at), since, day * DAY);
    const to = Math.min(now, until, (day + 1) * DAY);
    return to > from ? sum + this.#last.bytes * BigInt(to - from) : sum;
  }

  get bytes(): bigint | undefined {
    return this.#last?.bytes;
  }
}

let bench: BillingBench;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());

const heldIn = async (orgId: string, since: number, until: number) => {
  const { lines } = await getUsage(bench.ctx, { orgId }, { since, until });
  return lines.find(({ metric }) => metric === "storage")?.quantity ?? 0n;
};

/** Takes the steps in the database and in the model. @returns every volume that ever was, by id; and those that are */
async function take(orgId: string, steps: readonly Step[]) {
  const models = new Map<string, Model>();
  const names = new Map<string, string>();
  const create = async (volume: number) => {
    const id = await insertVolume(bench.database, { orgId, name: `v${volume}` });
    models.set(id, new Model());
    names.set(id, `v${volume}`);
    return id;
  };
  const ids = await Promise.all([0, 1, 2].map(create));
  for (const { volume, at, bytes } of steps) {
    const volumeId = ids[volume] ?? "";
    if (bytes !== null) {
      await measured(bench.database, { orgId, volumeId, at: rfc(at), bytes });
      models.get(volumeId)?.measure(at, bytes);
      continue;
    }
    await ended(bench.database, volumeId, rfc(at));
    await bench.database.query(
      "UPDATE sandbox.volumes SET deleted_at = now() WHERE id = $1::uuid RETURNING id",
      volumeId,
    );
    models.get(volumeId)?.end(at);
    names.delete(volumeId);
    ids[volume] = await create(volume);
  }
  return { models, names };
}

test("random measurements over random windows: exact; days, volumes and adjoining windows add up", async () => {
  let cut = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 25 }),
      fc.array(instant, { minLength: 3, maxLength: 3 }),
      instant,
      async (steps, instants, nowUs) => {
        const { orgId } = await bench.organization();
        const { models, names } = await take(orgId, steps);
        const now = toMs(nowUs);
        bench.setNow(new Date(now).toISOString());
        const [a = 0, b = 0, c = 0] = instants.map(toMs).sort((x, y) => x - y);

        const [usage, first, second, rows] = await Promise.all([
          getUsage(bench.ctx, { orgId }, { since: a, until: c }),
          heldIn(orgId, a, b),
          heldIn(orgId, b, c),
          listStorageUsage(bench.ctx, { orgId }, { since: a, until: c }),
        ]);

        const expected = [...models].flatMap(([volumeId, model]) =>
          Array.from({ length: DAYS + 2 }, (_, i) => FROM / DAY - 1 + i).flatMap((day) => {
            const held = model.within(day, a, Math.min(c, now), now);
            return held > 0n ? [{ volumeId, day, held }] : [];
          }),
        );
        const sum = expected.reduce((total, { held }) => total + held, 0n);
        const quantity = usage.lines.find(({ metric }) => metric === "storage")?.quantity;
        expect(quantity).toBe(sum);
        expect(first + second).toBe(sum);
        expect(usage.days.reduce((total, { use }) => total + use.storage, 0n)).toBe(sum);
        expect(
          rows
            .map(({ identity: _, ...row }) => row)
            .sort((x, y) => x.day - y.day || (x.volumeId < y.volumeId ? -1 : 1)),
        ).toEqual(expected.sort((x, y) => x.day - y.day || (x.volumeId < y.volumeId ? -1 : 1)));
        for (const { volumeId, identity } of rows) expect(identity?.name).toBe(names.get(volumeId));
        const held = [...models.values()].flatMap(({ bytes }) => bytes ?? []);
        const measuredOnce = [...models.values()].some(({ stretches }) => stretches > 0);
        if (held.length > 0 || measuredOnce)
          expect(usage.storedBytes).toBe(held.reduce((total, bytes) => total + bytes, 0n));
        if (b % DAY !== 0 && sum > 0n) cut += 1;
      },
    ),
    { numRuns: 240 },
  );
  // About a quarter of the windows cut something; an eighth is far below what chance does.
  expect(cut).toBeGreaterThan(30);
}, 120_000);

test("what is accrued is the area under the measurements, to one unit a stretch", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 20 }), async (steps) => {
      const { orgId } = await bench.organization();
      const { models } = await take(orgId, steps);
      const rows = await bench.database.query<{ id: string; byteMs: string }>(
        `SELECT volume_id AS id, sum(byte_ms)::text AS "byteMs" FROM billing.storage_accruals
         WHERE org_id = $1::uuid GROUP BY volume_id`,
        orgId,
      );
      const accrued = new Map(rows.map(({ id, byteMs }) => [id, BigInt(byteMs)]));
      for (const [id, { twice, stretches }] of models) {
        const off = twice - 2n * (accrued.get(id) ?? 0n);
        expect(off >= -BigInt(stretches) && off <= BigInt(stretches)).toBe(true);
      }
    }),
    { numRuns: 40 },
  );
}, 120_000);

test("processes that measure at once make one chain: without a gap, and nothing twice", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(instant, { minLength: 2, maxLength: 24 }),
      fc.bigInt({ min: 1n, max: 2n ** 40n }),
      fc.boolean(),
      async (instants, bytes, ends) => {
        const { orgId } = await bench.organization();
        const volumeId = randomUUID();
        const last = FROM * 1_000 + DAYS * DAY * 1_000 + 1;
        // Each is told by two.
        const samples = [...instants, ...instants].map((at) =>
          measured(bench.database, { orgId, volumeId, at: rfc(at), bytes }),
        );
        await Promise.all(samples);
        if (ends) await Promise.all([1, 2].map(() => ended(bench.database, volumeId, rfc(last))));
        const rows = await bench.database.query<Record<"start" | "end" | "held", string>>(
          `SELECT (extract(epoch FROM day::timestamp) * 1000 + start_ms)::bigint::text AS start,
                  (extract(epoch FROM day::timestamp) * 1000 + end_ms)::bigint::text AS end, byte_ms::text AS held
           FROM billing.storage_accruals WHERE volume_id = $1::uuid ORDER BY day`,
          volumeId,
        );
        for (const [i, { start, end, held }] of rows.entries()) {
          expect(BigInt(held)).toBe(bytes * (BigInt(end) - BigInt(start)));
          if (i > 0) expect(start).toBe(rows[i - 1]?.end);
        }
        const until = toMs(ends ? last : Math.max(...instants));
        if (rows.length > 0) expect(rows.at(-1)?.end).toBe(String(until));
        const samplesLeft = await bench.database.query<{ bytes: bigint }>(
          "SELECT bytes FROM billing.storage_samples WHERE volume_id = $1::uuid",
          volumeId,
        );
        expect(samplesLeft).toEqual(ends ? [] : [{ bytes }]);
      },
    ),
    { numRuns: 40 },
  );
}, 120_000);

test("usage that is read while measurements come is always that of one moment", async () => {
  const { orgId } = await bench.organization();
  const volumeId = randomUUID();
  const start = Date.parse("2028-01-30T00:00:00Z");
  const hour = 3_600_000;
  const bytes = 12_345n;
  const end = start + 200 * hour;
  bench.setNow(new Date(end).toISOString());
  const at = (i: number) => rfc((start + i * hour) * 1_000);
  await measured(bench.database, { orgId, volumeId, at: at(0), bytes });
  let writing = true;
  const writes = (async () => {
    for (let i = 1; i < 150; i += 1)
      await measured(bench.database, { orgId, volumeId, at: at(i), bytes });
    writing = false;
  })();
  const seen: bigint[] = [];
  while (writing) seen.push(await heldIn(orgId, start, end));
  await writes;
  expect(new Set(seen)).toEqual(new Set([bytes * BigInt(end - start)]));
});
