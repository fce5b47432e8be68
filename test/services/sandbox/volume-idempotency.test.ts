import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { deleteVolume, updateVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import { getHostVolume } from "../../../services/sandbox/domain/read-volumes.ts";
import { reportUse } from "../../../services/sandbox/domain/volume-use.ts";
import {
  type Bench,
  createBench,
  createInput,
  newTenant,
  setEngine,
  setLimits,
} from "./support.ts";

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

/** The same caller with a key of its own, for a request that is told apart by `request`. */
function keyed(caller: Caller, request = "request", key: string = randomUUID()): Caller {
  const requestSha256 = createHash("sha256").update(request).digest();
  return { ...caller, idempotency: { key, requestSha256 } };
}

const input = (name: string, capacityGib: number | null = null) => ({
  name,
  capacityGib,
  labels: { a: "ü" },
});
const many = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: 50 }, make));

async function written({ orgId }: Caller) {
  const [row] = await bench.database.query<
    Record<"volumes" | "events" | "samples" | "records", number>
  >(
    `SELECT (SELECT count(*)::int FROM sandbox.volumes WHERE org_id = $1::uuid) AS volumes,
            (SELECT count(*)::int FROM organization.events WHERE org_id = $1::uuid) AS events,
            (SELECT count(*)::int FROM billing.storage_samples WHERE org_id = $1::uuid) AS samples,
            (SELECT count(*)::int FROM organization.idempotency WHERE org_id = $1::uuid) AS records`,
    orgId,
  );
  return row;
}

async function records({ orgId }: Caller) {
  return bench.database.query(
    "SELECT verb, resource_id AS id FROM organization.idempotency WHERE org_id = $1::uuid",
    orgId,
  );
}

test("fifty creates at once with one key: one volume, fifty equal answers", async () => {
  const owner = await newTenant(bench.database);
  const caller = keyed(owner);
  const answers = await many(() => createVolume(bench.ctx, caller, input("data", 3)));
  const [first] = answers.filter(({ replay }) => !replay);
  if (!first) throw new Error("nobody did it");
  expect(answers.filter(({ replay }) => replay)).toHaveLength(49);
  for (const { replay, ...answer } of answers) expect(answer).toEqual(first);
  // With the host volume.
  expect(await written(owner)).toEqual({ volumes: 2, events: 1, samples: 1, records: 1 });
  expect(await records(owner)).toEqual([{ verb: "volume_create", id: first.id }]);
});

test("a change and a delete are done once, and answered as the volume was, whatever it is by then", async () => {
  const owner = await newTenant(bench.database);
  const { id } = await createVolume(bench.ctx, owner, input("data"));
  // More than a number of JSON holds.
  const usedBytes = 2n ** 62n + 1n;
  await reportUse(bench.ctx, { volumeId: id, usedBytes, measuredAt: new Date() });
  const [changing, deleting] = [keyed(owner), keyed(owner)];
  const relabel = () =>
    updateVolume(bench.ctx, changing, id, { capacityGib: null, labels: { b: "c" } });
  const answers = await many(relabel);
  const [first] = answers.filter(({ replay }) => !replay);
  expect(first).toMatchObject({ usedBytes, labels: { b: "c" } });
  await updateVolume(bench.ctx, owner, id, { capacityGib: 9, labels: {} });
  const removed = await many(() => deleteVolume(bench.ctx, deleting, id));
  expect(removed.filter(({ replay }) => !replay)).toHaveLength(1);
  await bench.ctx.store.reportVolumeRemoved(id);
  await createVolume(bench.ctx, owner, input("data"));
  const [again, gone] = [await relabel(), await deleteVolume(bench.ctx, deleting, id)];
  expect(again).toEqual({ ...first, replay: { answer: null } });
  expect(gone).toMatchObject({ id, name: "data", status: "deleting", replay: { answer: null } });
  // Two creates, two changes, one delete, and the capacity that it was over.
  expect(await written(owner)).toMatchObject({ volumes: 2, events: 6, records: 2 });
});

test("a change that changes nothing is remembered too", async () => {
  const owner = await newTenant(bench.database);
  const { id } = await createVolume(bench.ctx, owner, input("data"));
  const caller = keyed(owner);
  const nothing = () =>
    updateVolume(bench.ctx, caller, id, { capacityGib: undefined, labels: undefined });
  const first = await nothing();
  await updateVolume(bench.ctx, owner, id, { capacityGib: 1, labels: {} });
  expect(await nothing()).toEqual({ ...first, replay: { answer: null } });
});

test("what state refuses is kept, though nothing stands in the way any more", async () => {
  const owner = await newTenant(bench.database);
  const host = await getHostVolume(bench.ctx, owner);
  const { id } = await createVolume(bench.ctx, owner, input("data"));
  const mounts = [{ guest: "/d", source: { case: "named" as const, value: { name: "data" } } }];
  const box = createInput({ mounts }, { start: true, name: "box" });
  const { id: sandboxId } = await createSandbox(bench.ctx, owner, box);
  const unknown = randomUUID();
  const callers = Array.from({ length: 5 }, () => keyed(owner));
  const tries = [
    (caller: Caller) => createVolume(bench.ctx, caller, input("data")),
    (caller: Caller) => deleteVolume(bench.ctx, caller, id),
    (caller: Caller) => deleteVolume(bench.ctx, caller, host.id),
    (caller: Caller) =>
      updateVolume(bench.ctx, caller, host.id, { capacityGib: 1, labels: undefined }),
    (caller: Caller) => deleteVolume(bench.ctx, caller, unknown),
  ];
  const refusals = () =>
    Promise.all(
      tries.map((each, i) =>
        each(callers[i] ?? owner).then(
          () => expect.unreachable("it was not refused"),
          (error) => error,
        ),
      ),
    );
  const firsts = await refusals();
  expect(firsts.map(({ reason }) => reason)).toEqual([
    "VOLUME_ALREADY_EXISTS",
    "VOLUME_IN_USE",
    "VOLUME_PROTECTED",
    "VOLUME_PROTECTED",
    "VOLUME_NOT_FOUND",
  ]);
  await bench.ctx.store.destroy(owner.orgId, { id: sandboxId }, owner.actor);
  await deleteVolume(bench.ctx, owner, id);
  const before = await written(owner);
  for (const [i, error] of (await refusals()).entries()) {
    const { reason, message, metadata } = firsts[i] ?? {};
    expect(error).toMatchObject({ reason, message });
    expect(error.metadata).toEqual({ ...metadata, replayed: "true" });
  }
  expect(await written(owner)).toEqual(before);
});

test("a capacity above the limit is not kept: it may pass at the next try", async () => {
  const owner = await newTenant(bench.database);
  const limit = (gib: number) =>
    setLimits(bench.database, owner.orgId, { max_total_storage_gib: gib });
  await limit(1);
  const caller = keyed(owner);
  const make = () => createVolume(bench.ctx, caller, input("data", 2));
  await expect(make()).rejects.toMatchObject({ reason: "INVALID_REQUEST" });
  await limit(2);
  const made = await make();
  expect(made.replay).toBeUndefined();
  await limit(1);
  expect(await make()).toEqual({ ...made, replay: { answer: null } });
});

test("a create of a sandbox is answered from the record, though its volume is deleted by then", async () => {
  const owner = await newTenant(bench.database);
  const { id } = await createVolume(bench.ctx, owner, input("data"));
  const mounts = [{ guest: "/d", source: { case: "named" as const, value: { name: "data" } } }];
  const caller = keyed(owner);
  const make = () => createSandbox(bench.ctx, caller, createInput({ mounts }));
  const made = await make();
  await deleteVolume(bench.ctx, owner, id);
  expect(await make()).toMatchObject({ id: made.id, replay: {} });
});

test("a key that was used for another request is refused, for a sandbox's too", async () => {
  const owner = await newTenant(bench.database);
  const made = await createVolume(bench.ctx, keyed(owner, "one", "key"), input("data"));
  const reused = { reason: "IDEMPOTENCY_KEY_REUSED" };
  const other = keyed(owner, "two", "key");
  await expect(createVolume(bench.ctx, other, input("more"))).rejects.toMatchObject(reused);
  await expect(deleteVolume(bench.ctx, other, made.id)).rejects.toMatchObject(reused);
  await expect(createSandbox(bench.ctx, other, createInput())).rejects.toMatchObject(reused);
  expect(await written(owner)).toMatchObject({ volumes: 2, records: 1 });
});
