import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { withClient } from "../../../runtime/postgres/connect.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { deleteVolume } from "../../../services/sandbox/domain/change-volume.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { createVolume } from "../../../services/sandbox/domain/create-volume.ts";
import { HOLDS_COMPUTE } from "../../../services/sandbox/domain/lifecycle.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import { reportUse } from "../../../services/sandbox/domain/volume-use.ts";
import type { NewSandbox, Store } from "../../../services/sandbox/store.ts";
import { PLACES_SQL, type PlacesRow, wrongPlaces } from "../../support/places.ts";
import { type Random, randomFrom } from "../../support/random.ts";
import { WRONG_VOLUMES_SQL } from "../../support/volumes.ts";
import {
  type Bench,
  createBench,
  createInput,
  hold,
  newTenant,
  overlap,
  setEngine,
} from "./support.ts";

const SEED = process.env.VOLUMES_SEED ?? "volumes";

let bench: Bench;
let caller: Caller;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
beforeEach(async () => {
  caller = await newTenant(bench.database);
});
afterAll(() => bench.close());

const volumeOf = async (name: string) =>
  (await createVolume(bench.ctx, caller, { name, capacityGib: null, labels: {} })).id;

function mounting(name: string, rest: { start?: boolean; name?: string } = {}) {
  const mounts = [{ guest: "/data", source: { case: "named" as const, value: { name } } }];
  return createInput({ mounts }, rest);
}

/** A start of what the store is asked to make by itself. */
function newSandbox(start: boolean): NewSandbox {
  const { spec } = mounting("data");
  const id = crypto.randomUUID();
  const made = { id, orgId: caller.orgId, name: id, slug: id, spec, requires: ["mounts.named"] };
  return { ...made, sealed: null, start, volumes: ["data"] };
}

const removeIn = (store: Store, id: string) =>
  store.deleteVolume(caller.orgId, id, caller.actor, HOLDS_COMPUTE);

test("a delete that met a start under way waits for it, and is refused", async () => {
  const volumeId = await volumeOf("data");
  const { id } = await createSandbox(bench.ctx, caller, mounting("data"));
  const late = overlap(
    bench,
    (store) => store.start(caller.orgId, { id }, caller.actor),
    () => deleteVolume(bench.ctx, caller, volumeId),
  );
  await expect(late).rejects.toMatchObject({ reason: "VOLUME_IN_USE" });
});

test("a delete that met a create with start under way waits for it, and is refused", async () => {
  const volumeId = await volumeOf("data");
  const late = overlap(
    bench,
    (store) => store.create(newSandbox(true), caller.actor),
    () => deleteVolume(bench.ctx, caller, volumeId),
  );
  await expect(late).rejects.toMatchObject({ reason: "VOLUME_IN_USE" });
});

test("a start that met a delete under way waits for it, and is refused", async () => {
  const volumeId = await volumeOf("data");
  const { id } = await createSandbox(bench.ctx, caller, mounting("data"));
  const late = overlap(
    bench,
    (store) => removeIn(store, volumeId),
    () => change.startSandbox(bench.ctx, caller, { id }),
  );
  await expect(late).rejects.toMatchObject({
    reason: "INVALID_SANDBOX_CONFIG",
    faults: [{ field: "spec.mounts[0].name", message: "volume 'data' was deleted" }],
  });
});

test.each([false, true])(
  "a create (start: %s) that met a delete under way waits for it, and is refused",
  async (start) => {
    const volumeId = await volumeOf("data");
    const late = overlap(
      bench,
      (store) => removeIn(store, volumeId),
      () => createSandbox(bench.ctx, caller, mounting("data", { start })),
    );
    await expect(late).rejects.toMatchObject({
      reason: "INVALID_REQUEST",
      faults: [{ field: "spec.mounts[0].name" }],
    });
  },
);

test("a create that met a delete and a create of the same name takes the new one", async () => {
  const volumeId = await volumeOf("data");
  const made = await overlap(
    bench,
    async (store) => {
      await removeIn(store, volumeId);
      const heir = { id: crypto.randomUUID(), orgId: caller.orgId, name: "data" };
      await store.createVolume({ ...heir, capacityGib: null, labels: {} }, caller.actor);
    },
    () => createSandbox(bench.ctx, caller, mounting("data", { start: true })),
  );
  const [row] = await bench.database.query<{ there: boolean; heir: boolean }>(
    `SELECT v.deleted_at IS NULL AS there, v.id <> $2::uuid AS heir FROM sandbox.mounted_volumes m
     JOIN sandbox.volumes v ON v.id = m.volume_id WHERE m.sandbox_id = $1::uuid`,
    made.id,
    volumeId,
  );
  expect(row).toEqual({ there: true, heir: true });
});

test("a start waits neither for a measurement nor for a change of its volume", async () => {
  const volumeId = await volumeOf("data");
  const { id } = await createSandbox(bench.ctx, caller, mounting("data"));
  const held = await hold(bench, async (store) => {
    await store.reportVolumeUse({ volumeId, usedBytes: 1n, measuredAt: new Date() });
    const to = { capacityGib: 1, labels: undefined };
    await store.updateVolume(caller.orgId, volumeId, caller.actor, to);
  });
  const started = await change.startSandbox(bench.ctx, caller, { id });
  expect(started.status).toBe("starting");
  await createSandbox(bench.ctx, caller, mounting("data", { start: true }));
  await held.commit();
  await held.end();
});

test("a measurement that met a delete under way begins nothing anew", async () => {
  const volumeId = await volumeOf("data");
  const reported = await overlap(
    bench,
    (store) => removeIn(store, volumeId),
    () => reportUse(bench.ctx, { volumeId, usedBytes: 5n, measuredAt: new Date() }),
  );
  expect(reported).toBe(false);
  expect(await bench.database.query(WRONG_VOLUMES_SQL)).toEqual([]);
});

/** What no snapshot may show: a start that its volumes refused takes no place either. */
async function wrong(): Promise<unknown[]> {
  const places = await bench.database.query<PlacesRow>(PLACES_SQL);
  return [...(await bench.database.query(WRONG_VOLUMES_SQL)), ...wrongPlaces(places)];
}

const EXPECTED = [
  "SANDBOX_NOT_FOUND",
  "NAME_ALREADY_EXISTS",
  "INVALID_STATE_TRANSITION",
  "INVALID_REQUEST",
  "INVALID_SANDBOX_CONFIG",
  "VOLUME_NOT_FOUND",
  "VOLUME_ALREADY_EXISTS",
  "VOLUME_IN_USE",
];
const VOLUMES = ["a", "b"];
const NAMES = ["one", "two", "three", "four"];

async function randomCall(random: Random, done: Map<string, number>): Promise<void> {
  const { ctx, database } = bench;
  const key = () => ({ name: random.pick(NAMES) });
  const act = random.weighted({
    ...{ create: 4, start: 8, stop: 1, destroy: 2, end: 6 },
    ...{ make: 4, remove: 6, measure: 2, forget: 2 },
  });
  const volume = async () => {
    const [row] = await database.query<{ id: string }>(
      "SELECT id FROM sandbox.volumes WHERE org_id = $1::uuid AND kind = 'managed' ORDER BY random() LIMIT 1",
      caller.orgId,
    );
    return row?.id ?? crypto.randomUUID();
  };
  if (act === "create") {
    const rest = { name: random.pick(NAMES), start: random.chance(0.6) };
    await createSandbox(ctx, caller, mounting(random.pick(VOLUMES), rest));
  } else if (act === "start") await change.startSandbox(ctx, caller, key());
  else if (act === "stop") await change.stopSandbox(ctx, caller, key());
  else if (act === "destroy") await change.destroySandbox(ctx, caller, key());
  else if (act === "make") await volumeOf(random.pick(VOLUMES));
  else if (act === "remove") await deleteVolume(ctx, caller, await volume());
  else if (act === "measure")
    await reportUse(ctx, { volumeId: await volume(), usedBytes: 1n, measuredAt: new Date() });
  else if (act === "forget") await ctx.store.reportVolumeRemoved(await volume());
  else await endOne(random);
  done.set(act, (done.get(act) ?? 0) + 1);
}

async function endOne(random: Random): Promise<void> {
  const [row] = await bench.database.query<{ id: string; generation: number }>(
    `SELECT s.id, s.generation FROM sandbox.sandboxes s JOIN sandbox.runs r
       ON r.sandbox_id = s.id AND r.closed_at IS NULL
     WHERE s.org_id = $1::uuid ORDER BY random() LIMIT 1`,
    caller.orgId,
  );
  const cause = random.pick(["crashed", "stopped"] as const);
  const ended = { kind: "ended", endedAt: null, cause, message: "" } as const;
  if (row) await report(bench.ctx, row.id, row.generation, ended);
}

test("starts, creates and deletes at once: at no moment does anything run whose volume is deleted", async () => {
  const strange: unknown[] = [];
  const done = new Map<string, number>();
  const refused = new Map<string, number>();
  let live = 12;
  const client = async (random: Random) => {
    for (let call = 0; call < 120; call += 1)
      try {
        await randomCall(random, done);
      } catch (error) {
        if (error instanceof ServiceError && EXPECTED.includes(error.reason))
          refused.set(error.reason, (refused.get(error.reason) ?? 0) + 1);
        else strange.push(error);
      }
    live -= 1;
  };
  const watcher = async () => {
    let looks = 0;
    for (; live > 0; looks += 1) strange.push(...(await wrong()));
    return looks;
  };
  const random = randomFrom(SEED);
  const clients = Array.from({ length: live }, (_, i) => client(random.fork(`${i}`)));
  const [looks] = await Promise.all([watcher(), ...clients]);
  expect(strange).toEqual([]);
  expect(looks).toBeGreaterThan(10);
  for (const act of ["create", "start", "make", "remove", "forget"])
    expect(done.get(act) ?? 0, act).toBeGreaterThan(10);
  for (const reason of ["VOLUME_IN_USE", "INVALID_SANDBOX_CONFIG"])
    expect(refused.get(reason) ?? 0, reason).toBeGreaterThan(5);
  expect(await wrong()).toEqual([]);
}, 120_000);

test("one volume, many that start with it and many that delete it: either it is gone or they run", async () => {
  const random = randomFrom(SEED);
  const seen = new Set<string>();
  for (let round = 0; round < 20; round += 1) {
    const name = `v${round}`;
    const volumeId = await volumeOf(name);
    const ready = await Promise.all(
      Array.from({ length: 6 }, () => createSandbox(bench.ctx, caller, mounting(name))),
    );
    const done = { start: 0, delete: 0 };
    const counted = (what: keyof typeof done, act: () => Promise<unknown>) => async () => {
      await act();
      done[what] += 1;
    };
    const acts = ready.flatMap(({ id }) => [
      counted("start", () => change.startSandbox(bench.ctx, caller, { id })),
      counted("start", () => createSandbox(bench.ctx, caller, mounting(name, { start: true }))),
    ]);
    const remove = counted("delete", () => deleteVolume(bench.ctx, caller, volumeId));
    for (let i = 0; i < 4; i += 1) acts.splice(random.between(0, acts.length), 0, remove);
    const results = await Promise.allSettled(acts.map((act) => act()));
    for (const each of results)
      if (each.status === "rejected") expect(EXPECTED).toContain(each.reason.reason);
    const outcome = { started: done.start > 0, deleted: done.delete };
    expect([
      { started: true, deleted: 0 },
      { started: false, deleted: 1 },
    ]).toContainEqual(outcome);
    seen.add(JSON.stringify(outcome));
    expect(await wrong()).toEqual([]);
  }
  // Otherwise nothing raced.
  expect(seen.size).toBe(2);
}, 60_000);

test("none of this was a deadlock", async () => {
  // Each connection tells its count when it ends.
  await bench.database.close();
  await withClient(bench.url, async (client) => {
    const others = async () => {
      const sql = `SELECT count(*)::int AS n FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
      return (await client.query(sql)).rows;
    };
    await expect.poll(others).toEqual([{ n: 0 }]);
    const sql = "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()";
    expect((await client.query(sql)).rows).toEqual([{ deadlocks: 0 }]);
  });
});
