import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { getUsage } from "../../../services/billing/domain/get-usage.ts";
import { listStorageUsage } from "../../../services/billing/domain/list-usage.ts";
import { createStore } from "../../../services/billing/store.ts";
import { deleteVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import { reportUse } from "../../../services/sandbox/domain/volume-use.ts";
import { randomFrom } from "../../support/random.ts";
import { type Bench, createBench } from "../sandbox/support.ts";
import { newOrganization } from "./support.ts";

// What the sandbox service does with volumes, and what billing makes of it.

let bench: Bench;
let caller: Caller;
beforeAll(async () => {
  bench = await createBench();
});
afterAll(() => bench.close());
beforeEach(async () => {
  caller = await newOrganization(bench.database);
});

const billing = () => ({ store: createStore(bench.database) });
const make = async (name: string) => {
  const { id } = await createVolume(bench.ctx, caller, { name, capacityGib: null, labels: {} });
  return id;
};
const measure = (volumeId: string, usedBytes: bigint, measuredAt = new Date()) =>
  reportUse(bench.ctx, { volumeId, usedBytes, measuredAt });
const open = { since: undefined, until: undefined };
const stored = async () => (await getUsage(billing(), caller, open)).storedBytes;
const samples = (volumeId: string) =>
  bench.database.query<{ bytes: bigint }>(
    "SELECT bytes FROM billing.storage_samples WHERE volume_id = $1::uuid",
    volumeId,
  );
/** Milliseconds and unit of what is accrued of a volume: one row a day, without a gap. */
const accruals = (volumeId: string) =>
  bench.database.query<{ ms: number; byteMs: string; held: number }>(
    `SELECT sum(end_ms - start_ms)::int AS ms, sum(byte_ms)::text AS "byteMs",
            (max((extract(epoch FROM day::timestamp) * 1000 + end_ms)) - min((extract(epoch FROM day::timestamp) * 1000 + start_ms)))::int AS held
     FROM billing.storage_accruals WHERE volume_id = $1::uuid HAVING count(*) > 0`,
    volumeId,
  );

/** Measures until some time has passed since the volume was made. */
async function grown(id: string, bytes: bigint) {
  await expect
    .poll(async () => {
      await measure(id, bytes);
      return accruals(id);
    })
    .not.toEqual([]);
  return accruals(id);
}

test("a volume is counted from the moment it is made", async () => {
  expect(await stored()).toBeUndefined();
  const id = await make("cache");
  expect(await stored()).toBe(0n);
  const [first] = await grown(id, 1_000_000n);
  expect(await stored()).toBe(1_000_000n);
  // It grew evenly: half of it for all of the time.
  expect(first?.byteMs).toBe(String(500_000 * (first?.ms ?? 0)));
});

test("a deleted one keeps its rows; one that is made under its name is another", async () => {
  const first = await make("again");
  await grown(first, 5n * 2n ** 30n);
  await deleteVolume(bench.ctx, caller, first);
  expect(await stored()).toBe(0n);
  const second = await make("again");
  await grown(second, 2n ** 30n);
  const rows = await listStorageUsage(billing(), caller, open);
  const named = new Map(rows.map(({ volumeId, identity }) => [volumeId, identity]));
  expect(named).toEqual(
    new Map([
      [first, undefined],
      [second, { name: "again" }],
    ]),
  );
  expect(await stored()).toBe(2n ** 30n);
});

test("a measurement that comes after the delete begins nothing", async () => {
  const id = await make("late");
  await grown(id, 10n);
  await deleteVolume(bench.ctx, caller, id);
  expect(await measure(id, 20n)).toBe(false);
  expect(await measure(randomUUID(), 20n)).toBe(false);
  expect(await samples(id)).toEqual([]);
  expect(await stored()).toBe(0n);
});

test("measurements and the delete at once: one chain to its end, whoever comes first", async () => {
  const random = randomFrom("measurements and deletes");
  for (let round = 0; round < 15; round += 1) {
    const id = await make(`racing-${round}`);
    await measure(id, 1_000n);
    const asked = Array.from({ length: 12 }, (_, i) =>
      measure(id, 1_000n, new Date(Date.now() - random.between(0, 5) + i)),
    );
    const deleting = deleteVolume(bench.ctx, caller, id);
    await Promise.all([...asked, deleting]);
    expect(await samples(id)).toEqual([]);
    const [all] = await accruals(id);
    expect(all?.ms).toBe(all?.held);
    expect(BigInt(all?.byteMs ?? 0)).toBeLessThanOrEqual(1_000n * BigInt(all?.ms ?? 0));
  }
});
