import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { deleteVolume, updateVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import { getHostVolume, getVolume } from "../../../services/sandbox/domain/read-volumes.ts";
import { reportUse } from "../../../services/sandbox/domain/volume-use.ts";
import { startHousekeeping } from "../../../services/sandbox/housekeeping.ts";
import { WRONG_VOLUMES_SQL } from "../../support/volumes.ts";
import { type Bench, createBench, eventsOf, newTenant, setLimits } from "./support.ts";

const GIB = 1024n ** 3n;
const METERING = { kind: "system", code: "metering", label: "Metering" };

let bench: Bench;
// When the next measurement began: past, so that none is in the future, and rising.
let clock = Date.now() - 3_600_000;

beforeAll(async () => {
  bench = await createBench();
});
afterAll(async () => {
  expect(await bench.database.query(WRONG_VOLUMES_SQL)).toEqual([]);
  await bench.close();
});

function tick(): Date {
  clock += 10;
  return new Date(clock);
}

const report = (volumeId: string, usedBytes: bigint, measuredAt = tick()) =>
  reportUse(bench.ctx, { volumeId, usedBytes, measuredAt });

async function volumeOf(caller: Caller, capacityGib: number | null, name = "data") {
  return (await createVolume(bench.ctx, caller, { name, capacityGib, labels: {} })).id;
}

/** What was told of being over, in its order. */
async function told(caller: Caller) {
  const events = await eventsOf(bench.database, caller);
  return events.filter(({ type }) => /exceeded|restored/.test(type));
}

async function flags({ orgId }: Caller) {
  const [row] = await bench.database.query<{ volumes: string[] | null; over: boolean | null }>(
    `SELECT (SELECT array_agg(coalesce(name, '') ORDER BY name) FROM sandbox.volumes
             WHERE org_id = $1::uuid AND over_capacity_at IS NOT NULL) AS volumes,
            (SELECT over_limit_at IS NOT NULL FROM sandbox.storage WHERE org_id = $1::uuid) AS over`,
    orgId,
  );
  return { volumes: row?.volumes ?? [], over: row?.over ?? false };
}

test("a report is what the volume holds; one that began no later changes nothing", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, null);
  const at = tick();
  const large = 2n ** 60n + 1n;
  expect(await report(id, large, at)).toBe(true);
  const read = async () => (await getVolume(bench.ctx, caller, id)).usedBytes;
  expect(await read()).toBe(large);
  expect(await report(id, 1n, at)).toBe(false);
  expect(await report(id, 1n, new Date(at.getTime() - 1))).toBe(false);
  expect(await read()).toBe(large);
  expect(await report(id, 7n)).toBe(true);
  expect(await read()).toBe(7n);
  expect(await told(caller)).toEqual([]);
});

test("a clock that is ahead does not keep later measurements out", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, null);
  await report(id, 1n, new Date(Date.now() + 86_400_000));
  const now = async () => {
    await report(id, 2n, new Date());
    return (await getVolume(bench.ctx, caller, id)).usedBytes;
  };
  await expect.poll(now).toBe(2n);
});

test("what a volume held is accrued between measurements, the host volume's too", async () => {
  const caller = await newTenant(bench.database);
  const { id } = await getHostVolume(bench.ctx, caller);
  await bench.database.query(
    "UPDATE sandbox.volumes SET created_at = now() - interval '1 day' WHERE id = $1::uuid RETURNING id",
    id,
  );
  const at = tick();
  await report(id, 1_000n, at);
  await report(id, 3_000n, new Date(at.getTime() + 4));
  const accrued = await bench.database.query(
    "SELECT sum(byte_ms)::int AS n FROM billing.storage_accruals WHERE volume_id = $1::uuid",
    id,
  );
  expect(accrued).toEqual([{ n: 8_000 }]);
});

test("a clock that was set back does not keep measurements out until it is there again", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, null);
  await report(id, 1n, new Date());
  await bench.database.query(
    "UPDATE sandbox.volumes SET measured_at = now() + interval '1 hour' WHERE id = $1::uuid RETURNING id",
    id,
  );
  const at = tick();
  expect(await report(id, 2n, at)).toBe(true);
  expect(await report(id, 3n, at)).toBe(false);
  expect((await getVolume(bench.ctx, caller, id)).usedBytes).toBe(2n);
});

test("what is found in the moment in which a volume is made, or before by a clock that was set back, is held since", async () => {
  const caller = await newTenant(bench.database);
  const id = await volumeOf(caller, null);
  const sample = () =>
    bench.database.query(
      `SELECT s.bytes::int AS bytes, s.at = v.created_at AS "sinceMade"
       FROM billing.storage_samples s JOIN sandbox.volumes v ON v.id = s.volume_id WHERE s.volume_id = $1::uuid`,
      id,
    );
  expect(await report(id, 5n)).toBe(true);
  expect(await sample()).toEqual([{ bytes: 5, sinceMade: true }]);
  expect(await report(id, 7n)).toBe(true);
  expect(await sample()).toEqual([{ bytes: 7, sinceMade: true }]);
});

describe("a volume's capacity", () => {
  test("is exceeded once and restored once, with one event each", async () => {
    const caller = await newTenant(bench.database);
    const id = await volumeOf(caller, 1);
    await report(id, GIB);
    expect(await told(caller)).toEqual([]);
    await report(id, GIB + 1n);
    await report(id, 2n * GIB);
    expect(await flags(caller)).toEqual({ volumes: ["data"], over: false });
    await report(id, GIB);
    await report(id, 0n);
    expect(await flags(caller)).toEqual({ volumes: [], over: false });
    const of = { volume_id: id, name: "data", capacity_bytes: Number(GIB) };
    expect(await told(caller)).toEqual([
      {
        type: "volume_capacity_exceeded",
        actor: METERING,
        payload: { ...of, used_bytes: Number(GIB + 1n) },
      },
      {
        type: "volume_capacity_restored",
        actor: METERING,
        payload: { ...of, used_bytes: Number(GIB) },
      },
    ]);
  });

  test("that is changed is judged by what was last measured", async () => {
    const caller = await newTenant(bench.database);
    const id = await volumeOf(caller, null);
    const cap = (capacityGib: number | null) =>
      updateVolume(bench.ctx, caller, id, { capacityGib, labels: undefined });
    await cap(1);
    expect(await told(caller)).toEqual([]);
    await report(id, 3n * GIB);
    await cap(2);
    await cap(3);
    await cap(2);
    await cap(null);
    const types = (await told(caller)).map(({ type }) => type.replace("volume_capacity_", ""));
    expect(types).toEqual(["exceeded", "restored", "exceeded", "restored"]);
    expect(await flags(caller)).toEqual({ volumes: [], over: false });
  });

  test("is exceeded once, however many reports and changes come at once", async () => {
    const caller = await newTenant(bench.database);
    const id = await volumeOf(caller, 1);
    const began = tick().getTime();
    await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        i % 3 === 0
          ? updateVolume(bench.ctx, caller, id, { capacityGib: 1, labels: { i: String(i) } })
          : report(id, 2n * GIB, new Date(began + i)),
      ),
    );
    clock = began + 60;
    expect((await told(caller)).map(({ type }) => type)).toEqual(["volume_capacity_exceeded"]);
  });
});

describe("an organization's storage", () => {
  test("is over its limit once all volumes hold more together, until they do not", async () => {
    const caller = await newTenant(bench.database);
    await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 2 });
    const [one, two] = [await volumeOf(caller, 1, "one"), await volumeOf(caller, null, "two")];
    await report(one, GIB);
    await report(two, GIB);
    expect(await told(caller)).toEqual([]);
    await report(two, GIB + 5n);
    await report(two, GIB + 6n);
    expect(await flags(caller)).toEqual({ volumes: [], over: true });
    await report(one, 0n);
    expect(await told(caller)).toEqual([
      {
        type: "storage_limit_exceeded",
        actor: METERING,
        payload: { used_bytes: Number(2n * GIB + 5n), limit_bytes: Number(2n * GIB) },
      },
      {
        type: "storage_limit_restored",
        actor: METERING,
        payload: { used_bytes: Number(GIB + 6n), limit_bytes: Number(2n * GIB) },
      },
    ]);
  });

  test("is judged anew when a volume is deleted, and after a change of the plan by the next report", async () => {
    const caller = await newTenant(bench.database);
    const limit = (gib: number | null) =>
      setLimits(bench.database, caller.orgId, { max_total_storage_gib: gib });
    const [one, two] = [await volumeOf(caller, null, "one"), await volumeOf(caller, null, "two")];
    await report(one, GIB);
    await report(two, GIB);
    await limit(1);
    await report(two, GIB);
    expect(await flags(caller)).toMatchObject({ over: true });
    await deleteVolume(bench.ctx, caller, one);
    expect(await flags(caller)).toMatchObject({ over: false });
    await limit(0);
    await report(two, GIB);
    await limit(null);
    await report(two, GIB);
    const types = (await told(caller)).map(({ type }) => type.replace("storage_limit_", ""));
    expect(types).toEqual(["exceeded", "restored", "exceeded", "restored"]);
  });

  test("is judged anew in the background where it is over: the limit may have been raised", async () => {
    const caller = await newTenant(bench.database);
    const limit = (gib: number) =>
      setLimits(bench.database, caller.orgId, { max_total_storage_gib: gib });
    await limit(1);
    await report(await volumeOf(caller, null), 2n * GIB);
    await bench.ctx.store.judgeStorage();
    expect(await flags(caller)).toMatchObject({ over: true });
    await limit(2);
    const judges = Array.from({ length: 4 }, () =>
      startHousekeeping(bench.ctx, (error) => expect.fail(String(error))),
    );
    await expect.poll(() => flags(caller)).toMatchObject({ over: false });
    await Promise.all(judges.map((judge) => judge.stop()));
    const types = (await told(caller)).map(({ type }) => type.replace("storage_limit_", ""));
    expect(types).toEqual(["exceeded", "restored"]);
  });

  test("is over once, however many volumes are reported at once", async () => {
    const caller = await newTenant(bench.database);
    await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 1 });
    const ids = await Promise.all(
      Array.from({ length: 20 }, (_, i) => volumeOf(caller, null, `v${i}`)),
    );
    const began = tick();
    await Promise.all(ids.map((id) => report(id, GIB / 10n, began)));
    await Promise.all(ids.map((id) => deleteVolume(bench.ctx, caller, id)));
    const types = (await told(caller)).map(({ type }) => type);
    expect(types).toEqual(["storage_limit_exceeded", "storage_limit_restored"]);
  });
});
