import { randomUUID } from "node:crypto";
import { createClient, createContextValues } from "@connectrpc/connect";
import pino from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { VolumeKind, VolumeStatus } from "../../../proto/gen/sandbox/v1/volume_pb.ts";
import { VolumeService } from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import { createVolumeService } from "../../../services/sandbox/volume-service.ts";
import { WRONG_VOLUMES_SQL } from "../../support/volumes.ts";
import { type Bench, createBench, eventsOf, newCaller, newTenant, setLimits } from "./support.ts";

// The service as its callers have it, messages and contract included.

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
});
afterAll(async () => {
  expect(await bench.database.query(WRONG_VOLUMES_SQL)).toEqual([]);
  await bench.close();
});

/** Each call is made for this caller. */
function clientOf(caller: Caller) {
  const transport = createInProcessTransport(
    (router) => router.service(VolumeService, createVolumeService(bench.ctx)),
    { log: pino({ level: "silent" }), freeze: true },
  );
  const client = createClient(VolumeService, transport);
  const contextValues = createContextValues().set(callerKey, caller);
  const options = { contextValues };
  return {
    create: async (name: string, rest: { capacityGib?: number; labels?: object } = {}) => {
      const { labels = {}, ...capacity } = rest;
      const values = labels as Record<string, string>;
      const request = { name, ...capacity, labels: { values } };
      const { volume } = await client.createVolume(request, options);
      if (!volume) throw new Error("no volume in the answer");
      return volume;
    },
    get: async (id: string) => (await client.getVolume({ id }, options)).volume,
    host: async () => (await client.getHostVolume({}, options)).volume,
    list: async () => (await client.listVolumes({}, options)).volumes,
    update: async (
      id: string,
      to: { capacity?: { gib?: number }; labels?: { values: Record<string, string> } },
    ) => (await client.updateVolume({ id, ...to }, options)).volume,
    remove: (id: string) => client.deleteVolume({ id }, options),
    reserve: (volumeId: string, bytes: bigint, writeId = randomUUID()) =>
      client.reserveVolumeBytes({ volumeId, writeId, bytes }, options),
    report: (volumeId: string, usedBytes: bigint) =>
      client.reportVolumeUse({ volumeId, usedBytes, measuredAt: nowAsTimestamp() }, options),
    removed: (volumeId: string) => client.reportVolumeRemoved({ volumeId }, options),
  };
}

function nowAsTimestamp() {
  const ms = Date.now();
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (ms % 1_000) * 1_000_000 };
}

async function tenant() {
  const caller = await newTenant(bench.database);
  return { caller, volumes: clientOf(caller), events: () => eventsOf(bench.database, caller) };
}

async function refusal(doing: Promise<unknown>): Promise<unknown> {
  return doing.then(
    () => expect.unreachable("it was not refused"),
    (error) => fromConnectError(error),
  );
}

describe("a volume that was made", () => {
  test("is answered as it is listed and got: active, empty, not measured", async () => {
    const { caller, volumes } = await tenant();
    const made = await volumes.create("data", { capacityGib: 3, labels: { team: "a", e: "" } });
    expect(made).toMatchObject({
      orgId: caller.orgId,
      kind: VolumeKind.MANAGED,
      name: "data",
      status: VolumeStatus.ACTIVE,
      capacityGib: 3,
      labels: { team: "a", e: "" },
    });
    expect(made.usedBytes).toBeUndefined();
    expect(made.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    expect(made.updatedAt).toEqual(made.createdAt);
    expect(await volumes.get(made.id)).toEqual(made);
    expect((await volumes.list()).at(-1)).toEqual(made);
  });

  test("has one event, and is metered from the beginning with nothing", async () => {
    const { caller, volumes, events } = await tenant();
    const { id } = await volumes.create("data", { labels: { a: "b" } });
    const payload = { volume_id: id, name: "data", capacity_gib: null, labels: { a: "b" } };
    expect(await events()).toEqual([{ type: "volume_created", actor: caller.actor, payload }]);
    const samples = await bench.database.query(
      `SELECT s.bytes::int AS bytes, s.at = v.created_at AS begins FROM billing.storage_samples s
       JOIN sandbox.volumes v ON v.id = s.volume_id WHERE v.id = $1::uuid`,
      id,
    );
    expect(samples).toEqual([{ bytes: 0, begins: true }]);
  });

  test("has its name alone in its organization, until it is deleted", async () => {
    const [one, other] = [await tenant(), await tenant()];
    const { id } = await one.volumes.create("data");
    await other.volumes.create("data");
    const before = await one.events();
    expect(await refusal(one.volumes.create("data"))).toMatchObject({
      reason: "VOLUME_ALREADY_EXISTS",
      message: "'name' already exists",
    });
    expect(await one.events()).toEqual(before);
    await one.volumes.remove(id);
    expect((await one.volumes.create("data")).id).not.toBe(id);
  });

  test.each(["Upper", "-data", "a--b", "", "a".repeat(64)])(
    "may not be called '%s'",
    async (name) => {
      const { volumes } = await tenant();
      const fault = expect.objectContaining({ field: "name" });
      expect(await refusal(volumes.create(name))).toMatchObject({
        reason: "INVALID_REQUEST",
        faults: expect.arrayContaining([fault]),
      });
    },
  );

  test("keeps the rules of labels and capacities, at a change too", async () => {
    const { volumes, events } = await tenant();
    const { id } = await volumes.create("a".repeat(63));
    const before = await events();
    const labels = { "sandbox.x": "" };
    const attempts = [
      volumes.create("b", { labels }),
      volumes.create("b", { capacityGib: 0 }),
      volumes.update(id, { labels: { values: labels } }),
      volumes.update(id, { capacity: { gib: 0 } }),
    ];
    for (const refused of await Promise.all(attempts.map(refusal)))
      expect(refused).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await events()).toEqual(before);
  });
});

describe("a list", () => {
  test("has the host volume first, then the oldest first", async () => {
    const { volumes } = await tenant();
    for (const name of ["c", "a", "b"]) await volumes.create(name);
    const listed = await volumes.list();
    expect(listed.map(({ name }) => name)).toEqual([undefined, "c", "a", "b"]);
    expect(listed[0]).toEqual(await volumes.host());
    expect(listed[0]).toMatchObject({ kind: VolumeKind.HOST, labels: {} });
  });
});

describe("a capacity", () => {
  test("is at most what the organization may store, when it is made and when it is changed", async () => {
    const { caller, volumes, events } = await tenant();
    await setLimits(bench.database, caller.orgId, { max_total_storage_gib: 5 });
    const { id } = await volumes.create("data", { capacityGib: 5 });
    const before = await events();
    const message = "is more than the 5 GiB that the organization may store";
    expect(await refusal(volumes.create("more", { capacityGib: 6 }))).toMatchObject({
      reason: "INVALID_REQUEST",
      faults: [{ field: "capacity_gib", message }],
    });
    expect(await refusal(volumes.update(id, { capacity: { gib: 6 } }))).toMatchObject({
      reason: "INVALID_REQUEST",
      faults: [{ field: "capacity.gib", message }],
    });
    expect(await events()).toEqual(before);
    await setLimits(bench.database, caller.orgId, { max_total_storage_gib: null });
    await volumes.create("most", { capacityGib: 2 ** 23 - 1 });
  });
});

describe("a change", () => {
  test("leaves what is absent, clears what is null, sets what is given, with what it was and is", async () => {
    const { caller, volumes, events } = await tenant();
    const made = await volumes.create("data", { capacityGib: 2, labels: { a: "1", b: "2" } });
    const { id } = made;
    const relabelled = await volumes.update(id, { labels: { values: { a: "2" } } });
    expect(relabelled).toMatchObject({ capacityGib: 2, labels: { a: "2" } });
    const cleared = await volumes.update(id, { capacity: {} });
    expect(cleared?.capacityGib).toBeUndefined();
    const both = await volumes.update(id, { capacity: { gib: 4 }, labels: { values: {} } });
    expect(both).toMatchObject({ capacityGib: 4, labels: {}, createdAt: made.createdAt });
    expect(await volumes.get(id)).toEqual(both);
    const updated = (await events()).filter(({ type }) => type === "volume_updated");
    expect(updated.map(({ actor }) => actor)).toEqual(Array(3).fill(caller.actor));
    const of = { volume_id: id, name: "data" };
    expect(updated.map(({ payload }) => payload)).toEqual([
      { ...of, before: { labels: { a: "1", b: "2" } }, after: { labels: { a: "2" } } },
      { ...of, before: { capacity_gib: 2 }, after: { capacity_gib: null } },
      {
        ...of,
        before: { capacity_gib: null, labels: { a: "2" } },
        after: { capacity_gib: 4, labels: {} },
      },
    ]);
  });

  test("to what it is already changes nothing", async () => {
    const { volumes, events } = await tenant();
    const made = await volumes.create("data", { capacityGib: 2, labels: { a: "1" } });
    const before = await events();
    expect(await volumes.update(made.id, {})).toEqual(made);
    const same = { capacity: { gib: 2 }, labels: { values: { a: "1" } } };
    expect(await volumes.update(made.id, same)).toEqual(made);
    expect(await events()).toEqual(before);
  });
});

describe("the host volume", () => {
  test("cannot be deleted or capped; its labels may be changed", async () => {
    const { volumes, events } = await tenant();
    const id = (await volumes.host())?.id ?? "";
    expect(await refusal(volumes.remove(id))).toMatchObject({
      reason: "VOLUME_PROTECTED",
      message: "the host volume cannot be deleted",
    });
    const capped = { capacity: { gib: 1 }, labels: { values: { a: "b" } } };
    expect(await refusal(volumes.update(id, capped))).toMatchObject({
      reason: "VOLUME_PROTECTED",
      message: "the host volume cannot be capped",
    });
    expect(await events()).toEqual([]);
    // To have none is what it has.
    const labelled = await volumes.update(id, { capacity: {}, labels: { values: { a: "b" } } });
    expect(labelled).toMatchObject({ kind: VolumeKind.HOST, labels: { a: "b" } });
    expect(await events()).toMatchObject([
      { type: "volume_updated", payload: { volume_id: id, name: null } },
    ]);
  });

  test("is the organization's: one that does not exist has none", async () => {
    expect(await refusal(clientOf(newCaller()).host())).toMatchObject({ reason: "ORG_NOT_FOUND" });
  });
});

describe("a volume that was deleted", () => {
  test("is gone for everybody at once, its row only when nothing is left of it", async () => {
    const { caller, volumes, events } = await tenant();
    const { id } = await volumes.create("data");
    expect(await volumes.remove(id)).toMatchObject({ id, name: "data" });
    const missing = [
      volumes.get(id),
      volumes.update(id, {}),
      volumes.remove(id),
      volumes.reserve(id, 1n),
    ];
    for (const refused of await Promise.all(missing.map(refusal)))
      expect(refused).toMatchObject({ reason: "VOLUME_NOT_FOUND" });
    expect((await volumes.list()).map(({ kind }) => kind)).toEqual([VolumeKind.HOST]);
    const deleted = (await events()).filter(({ type }) => type === "volume_deleted");
    const payload = { volume_id: id, name: "data" };
    expect(deleted).toEqual([{ type: "volume_deleted", actor: caller.actor, payload }]);
    const rows = () =>
      bench.database.query("SELECT id FROM sandbox.volumes WHERE id = $1::uuid", id);
    expect(await rows()).toEqual([{ id }]);
    await volumes.removed(id);
    expect(await rows()).toEqual([]);
    // Said again, and of one that is not deleted, it does nothing.
    await volumes.removed(id);
    const { id: alive } = await volumes.create("data");
    await volumes.removed(alive);
    expect(await volumes.get(alive)).toBeDefined();
  });

  test("keeps what it accrued, and accrues nothing more, whatever is still measured", async () => {
    const { volumes } = await tenant();
    const { id } = await volumes.create("data");
    await bench.database.query(
      `UPDATE billing.storage_samples SET at = at - interval '2 hours', bytes = 1000
       WHERE volume_id = $1::uuid RETURNING volume_id`,
      id,
    );
    await volumes.remove(id);
    const accrued = () =>
      bench.database.query<{ hours: number }>(
        `SELECT round(sum(byte_ms) / 3600000000)::int AS hours FROM billing.storage_accruals
         WHERE volume_id = $1::uuid`,
        id,
      );
    expect(await accrued()).toEqual([{ hours: 2 }]);
    await volumes.report(id, 5_000n);
    const samples = await bench.database.query(
      "SELECT at FROM billing.storage_samples WHERE volume_id = $1::uuid",
      id,
    );
    expect(samples).toEqual([]);
    expect(await accrued()).toEqual([{ hours: 2 }]);
  });
});

test("another organization's volume is one that does not exist", async () => {
  const [owner, other] = [await tenant(), await tenant()];
  const made = await owner.volumes.create("data", { capacityGib: 1 });
  const { id } = made;
  const before = await owner.events();
  const attempts = [
    other.volumes.get(id),
    other.volumes.update(id, { labels: { values: { a: "b" } } }),
    other.volumes.remove(id),
    other.volumes.reserve(id, 1n),
  ];
  for (const refused of await Promise.all(attempts.map(refusal)))
    expect(refused).toMatchObject({ reason: "VOLUME_NOT_FOUND" });
  expect(await other.volumes.list()).toHaveLength(1);
  expect(await owner.volumes.get(id)).toEqual(made);
  expect(await owner.events()).toEqual(before);
  expect(await other.events()).toEqual([]);
});
