import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openDatabase } from "../../../prisma/database.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { deleteVolume, updateVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import {
  reportUse,
  reserveBytes,
  settleWrite,
} from "../../../services/sandbox/domain/volume-use.ts";
import { startHousekeeping } from "../../../services/sandbox/housekeeping.ts";
import { createStore } from "../../../services/sandbox/store.ts";
import { type Random, randomFrom } from "../../support/random.ts";
import { WRONG_VOLUMES_SQL } from "../../support/volumes.ts";
import { type Bench, createBench, newTenant, overlap, setLimits } from "./support.ts";

const SEED = process.env.VOLUMES_SEED ?? "volumes";
const MIB = 1024n * 1024n;
const GIB = 1024n * MIB;

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
});
afterAll(async () => {
  expect(await bench.database.query(WRONG_VOLUMES_SQL)).toEqual([]);
  await bench.close();
});

async function volumeOf(caller: Caller, capacityGib: number | null, name = "data") {
  return (await createVolume(bench.ctx, caller, { name, capacityGib, labels: {} })).id;
}

const reserve = (caller: Caller, volumeId: string, bytes: bigint, id: string = randomUUID()) =>
  reserveBytes(bench.ctx, caller, { id, volumeId, bytes });

async function writesOf(volumeId: string) {
  return bench.database.query<{ id: string; bytes: string; settled: boolean }>(
    `SELECT id, bytes::text, settled_at IS NOT NULL AS settled FROM sandbox.volume_writes
     WHERE volume_id = $1::uuid ORDER BY id`,
    volumeId,
  );
}

async function databaseNow(): Promise<Date> {
  const [row] = await bench.database.query<{ now: Date }>("SELECT clock_timestamp() AS now");
  if (!row) throw new Error("no clock");
  return row.now;
}

/** Later than what the database's clock has shown, in whole milliseconds. */
async function databaseLater(): Promise<Date> {
  const before = await databaseNow();
  await expect.poll(async () => (await databaseNow()).getTime()).toBeGreaterThan(before.getTime());
  return databaseNow();
}

const overQuota = (quota: string, limit: bigint, used: bigint, requested: bigint) => ({
  reason: "QUOTA_EXCEEDED",
  metadata: {
    quota,
    limit: String(limit),
    used: String(used),
    requested: String(requested),
  },
});

test("where nothing is capped nothing is written down", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, null);
  const write = randomUUID();
  await reserve(caller, id, 2n ** 62n, write);
  await settleWrite(bench.ctx, { id: write, bytes: 5n });
  expect(await writesOf(id)).toEqual([]);
});

test("a write gets room up to the volume's capacity, and not a byte more", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  await reserve(caller, id, GIB - 10n);
  await expect(reserve(caller, id, 11n)).rejects.toMatchObject(
    overQuota("capacity_gib", GIB, GIB - 10n, 11n),
  );
  await reserve(caller, id, 10n);
  // A file without content takes none.
  await reserve(caller, id, 0n);
  await expect(reserve(caller, id, 2n ** 63n - 1n)).rejects.toMatchObject({
    reason: "QUOTA_EXCEEDED",
  });
});

test("all volumes of an organization together get what it may store", async () => {
  const caller = await newTenant(bench.database);
  await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 1 });
  const [one, two] = [await volumeOf(caller, 1, "one"), await volumeOf(caller, null, "two")];
  await reserve(caller, one, GIB / 2n);
  await reserve(caller, two, GIB / 2n - 1n);
  await expect(reserve(caller, two, 2n)).rejects.toMatchObject(
    overQuota("max_total_storage_gib", GIB, GIB - 1n, 2n),
  );
  await reserve(caller, one, 1n);
});

test("a write grows from what it has, and the same again asks for nothing", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  const write = randomUUID();
  for (const bytes of [MIB, 600n * MIB, 600n * MIB, MIB]) await reserve(caller, id, bytes, write);
  expect(await writesOf(id)).toEqual([{ id: write, bytes: String(600n * MIB), settled: false }]);
  await reserve(caller, id, 424n * MIB);
  await expect(reserve(caller, id, 601n * MIB, write)).rejects.toMatchObject({
    reason: "QUOTA_EXCEEDED",
  });
  // What it has it keeps, whatever the capacity is by then.
  await reserve(caller, id, 600n * MIB, write);
});

test("what a write gave up is free at once; what it wrote counts until it is measured", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  const [given, kept] = [randomUUID(), randomUUID()];
  await reserve(caller, id, 512n * MIB, given);
  await reserve(caller, id, 512n * MIB, kept);
  const early = await databaseNow();
  await settleWrite(bench.ctx, { id: given, bytes: 0n });
  await settleWrite(bench.ctx, { id: kept, bytes: 100n * MIB });
  const settled = [{ id: kept, bytes: String(100n * MIB), settled: true }];
  expect(await writesOf(id)).toEqual(settled);
  // Said again, it changes nothing: neither does a promise that comes late.
  await settleWrite(bench.ctx, { id: kept, bytes: 7n });
  await reserve(caller, id, 900n * MIB, kept);
  expect(await writesOf(id)).toEqual(settled);
  // It began before, so it may not have seen all.
  await reportUse(bench.ctx, { volumeId: id, usedBytes: 50n * MIB, measuredAt: early });
  expect(await writesOf(id)).toEqual(settled);
  await expect(reserve(caller, id, 900n * MIB)).rejects.toMatchObject(
    overQuota("capacity_gib", GIB, 150n * MIB, 900n * MIB),
  );
  const measuredAt = await databaseLater();
  await reportUse(bench.ctx, { volumeId: id, usedBytes: 100n * MIB, measuredAt });
  expect(await writesOf(id)).toEqual([]);
  await reserve(caller, id, 924n * MIB);
});

test("a write that nobody was heard of is given up, and its row goes", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  const [lost, done] = [randomUUID(), randomUUID()];
  await reserve(caller, id, 500n * MIB, lost);
  await reserve(caller, id, 500n * MIB, done);
  await settleWrite(bench.ctx, { id: done, bytes: 500n * MIB });
  await bench.database.query(
    "UPDATE sandbox.volume_writes SET expires_at = now() WHERE volume_id = $1::uuid RETURNING id",
    id,
  );
  // What was written is there, however long it is not measured.
  await expect(reserve(caller, id, 600n * MIB)).rejects.toMatchObject(
    overQuota("capacity_gib", GIB, 500n * MIB, 600n * MIB),
  );
  const another = randomUUID();
  await reserve(caller, id, 524n * MIB, another);
  // It is back too late: its room is another's.
  await expect(reserve(caller, id, 500n * MIB, lost)).rejects.toMatchObject({
    reason: "QUOTA_EXCEEDED",
  });
  const errors: unknown[] = [];
  const housekeeping = startHousekeeping(bench.ctx, (error) => errors.push(error));
  const left = async () => (await writesOf(id)).map((write) => write.id).sort();
  await expect.poll(left).toEqual([another, done].sort());
  await housekeeping.stop();
  expect(errors).toEqual([]);
});

test("a delete forgets what was promised of the volume", async () => {
  const caller = await newTenant(bench.database);
  await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 1 });
  const [one, two] = [await volumeOf(caller, null, "one"), await volumeOf(caller, null, "two")];
  const write = randomUUID();
  await reserve(caller, one, GIB, write);
  await expect(reserve(caller, two, 1n)).rejects.toMatchObject({ reason: "QUOTA_EXCEEDED" });
  await deleteVolume(bench.ctx, caller, one);
  await settleWrite(bench.ctx, { id: write, bytes: GIB });
  expect(await writesOf(one)).toEqual([]);
  await reserve(caller, two, GIB);
});

test("a promise that met another one under way waits for it, and finds less room", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  const late = overlap(
    bench,
    (store) =>
      store.reserveBytes(caller.orgId, { id: randomUUID(), volumeId: id, bytes: GIB - 1n }),
    () => reserve(caller, id, 2n),
  );
  await expect(late).rejects.toMatchObject(overQuota("capacity_gib", GIB, GIB - 1n, 2n));
});

test("a promise that met a measurement under way counts what that found", async () => {
  const caller = await newTenant(bench.database);
  await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 1 });
  const [one, two] = [await volumeOf(caller, null, "one"), await volumeOf(caller, null, "two")];
  const late = overlap(
    bench,
    (store) => store.reportVolumeUse({ volumeId: one, usedBytes: GIB, measuredAt: new Date() }),
    () => reserve(caller, two, 1n),
  );
  await expect(late).rejects.toMatchObject(overQuota("max_total_storage_gib", GIB, GIB, 1n));
});

test("hundreds at once through two stores: what is promised is never more than the capacity", async () => {
  const caller = await newTenant(bench.database);
  await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 3 });
  const ids = [await volumeOf(caller, 1, "a"), await volumeOf(caller, 1, "b")];
  ids.push(await volumeOf(caller, null, "c"));
  const second = openDatabase(bench.url, { poolSize: 8 });
  const contexts = [bench.ctx, { ...bench.ctx, store: createStore(second) }];
  const random = randomFrom(SEED);
  const asked = Array.from({ length: 600 }, (_, i) => ({
    ctx: contexts[i % 2] ?? bench.ctx,
    volumeId: random.pick(ids),
    bytes: BigInt(random.between(1, 64)) * MIB,
  }));
  const granted = new Map<string, bigint>();
  const strange: unknown[] = [];
  await Promise.all(
    asked.map(async ({ ctx, volumeId, bytes }) => {
      try {
        await reserveBytes(ctx, caller, { id: randomUUID(), volumeId, bytes });
        granted.set(volumeId, (granted.get(volumeId) ?? 0n) + bytes);
      } catch (error) {
        if (!(error instanceof ServiceError && error.reason === "QUOTA_EXCEEDED"))
          strange.push(error);
      }
    }),
  );
  await second.close();
  expect(strange).toEqual([]);
  const sums = ids.map((id) => granted.get(id) ?? 0n);
  const rows = await Promise.all(ids.map(writesOf));
  expect(rows.map((writes) => writes.reduce((sum, { bytes }) => sum + BigInt(bytes), 0n))).toEqual(
    sums,
  );
  for (const sum of sums.slice(0, 2)) expect(sum <= GIB).toBe(true);
  const together = sums.reduce((sum, each) => sum + each, 0n);
  expect(together <= 3n * GIB).toBe(true);
  // And not because they got nothing: whoever was refused found less room than the largest asks for.
  expect(together > 3n * GIB - 64n * MIB).toBe(true);
}, 60_000);

test("writes, measurements and changes at once: what is there and what goes on fits at every moment", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, 1);
  // The truth: bytes on the disk, and bytes that a write under way may still put there.
  let disk = 0n;
  let underWay = 0n;
  const strange: unknown[] = [];
  let refusals = 0;
  const check = () => {
    if (disk + underWay > GIB) strange.push(`${disk} on the disk and ${underWay} under way`);
  };
  const writer = async (random: Random) => {
    for (let turn = 0; turn < 40; turn += 1) {
      const write = randomUUID();
      let had = 0n;
      try {
        for (let step = random.between(1, 3); step > 0; step -= 1) {
          const wanted = had + BigInt(random.between(1, 60)) * MIB;
          await reserve(caller, id, wanted, write);
          underWay += wanted - had;
          had = wanted;
          check();
        }
      } catch (error) {
        if (!(error instanceof ServiceError && error.reason === "QUOTA_EXCEEDED"))
          strange.push(error);
        refusals += 1;
      }
      // Wholly there before it is said to be over, or not at all.
      const wrote = random.chance(0.5) ? had : 0n;
      disk += wrote;
      underWay -= had;
      await settleWrite(bench.ctx, { id: write, bytes: wrote });
    }
  };
  let live = 8;
  const measurer = async (random: Random) => {
    while (live > 0) {
      const measuredAt = await databaseNow();
      await reportUse(bench.ctx, { volumeId: id, usedBytes: disk, measuredAt });
      // Sometimes all of it is removed, which a measurement finds later.
      if (random.chance(0.3)) disk = 0n;
      const labels = { turn: String(random.between(1, 1_000)) };
      await updateVolume(bench.ctx, caller, id, { capacityGib: undefined, labels });
    }
  };
  const random = randomFrom(SEED);
  const writers = Array.from({ length: live }, (_, i) =>
    writer(random.fork(`${i}`)).finally(() => {
      live -= 1;
    }),
  );
  await Promise.all([...writers, measurer(random.fork("measurer"))]);
  expect(strange).toEqual([]);
  expect(refusals).toBeGreaterThan(10);
  await reportUse(bench.ctx, { volumeId: id, usedBytes: disk, measuredAt: await databaseLater() });
  expect(await writesOf(id)).toEqual([]);
}, 60_000);
