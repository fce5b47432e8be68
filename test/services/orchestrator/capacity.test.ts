import { afterEach, expect, test, vi } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import type { Status } from "../../../services/sandbox/domain/sandbox.ts";
import { createInput, newCaller } from "../sandbox/support.ts";
import { believed, createSystem, type System, type SystemOptions } from "./support.ts";

let system: System;
afterEach(() => system.close());

const patient = { timeout: 15_000 };
const host = (vcpus: number): SystemOptions => ({
  engine: { capacity: { vcpus, memoryMib: 64 * 1024 } },
});
const reaches = (id: string, status: Status, own = system.caller) =>
  expect
    .poll(async () => (await change.getSandbox(system.ctx, own, { id })).status, patient)
    .toBe(status);
const waits = (id: string, own = system.caller) =>
  expect
    .poll(async () => (await change.getSandbox(system.ctx, own, { id })).statusReason, patient)
    .toBe("insufficient_capacity");
const create = async (vcpus: number, own: Caller = system.caller) => {
  const input = createInput({ resources: { vcpus } }, { start: true });
  return (await createSandbox(system.ctx, own, input)).id;
};
const stop = (id: string, own = system.caller) => change.stopSandbox(system.ctx, own, { id });

test("one that waits is told once, and costs neither an engine call nor a write while it waits", async () => {
  system = await createSystem(host(1));
  const first = await create(1);
  await reaches(first, "running");
  const ensureRunning = vi.spyOn(system.engine, "ensureRunning");
  const told = vi.spyOn(system.ctx.store, "reportPlacement");
  const waiting = await create(1);
  await waits(waiting);
  const version = () =>
    system.database.query(
      `SELECT r.xmin::text AS run, s.xmin::text AS sandbox FROM sandbox.runs r
       JOIN sandbox.sandboxes s ON s.id = r.sandbox_id WHERE s.id = $1::uuid`,
      waiting,
    );
  const before = await version();
  // Sweeps go by, and looks on account of others.
  for (let i = 0; i < 5; i += 1) {
    await waits(await create(1));
    await new Promise((go) => setTimeout(go, 400));
  }
  expect(await version()).toEqual(before);
  expect(told).toHaveBeenCalledTimes(6);
  expect(ensureRunning).not.toHaveBeenCalled();
  await stop(first);
  await reaches(waiting, "running");
});

test("a destroyed sandbox gives its room back, and what fits is placed past what does not", async () => {
  system = await createSystem(host(4));
  const [first, second] = [await create(3), await create(1)];
  await reaches(first, "running");
  await reaches(second, "running");
  const large = await create(4);
  await waits(large);
  const small = await create(1);
  await waits(small);
  await change.destroySandbox(system.ctx, system.caller, { id: second });
  await reaches(small, "running");
  await waits(large);
});

test("as room appears organizations take turns, each with its oldest first", async () => {
  system = await createSystem(host(1));
  const [a, b] = [newCaller(), newCaller()];
  let running = await create(1, a);
  await reaches(running, "running", a);
  const mine: string[] = [];
  for (let i = 0; i < 3; i += 1) mine.push(await create(1, a));
  const other = await create(1, b);
  for (const id of mine) await waits(id, a);
  await waits(other, b);
  const order = [other, ...mine];
  for (const next of order) {
    await stop(running, running === other ? b : a);
    await reaches(next, "running", next === other ? b : a);
    running = next;
  }
});

test("one that has waited for more than a minute is not starved by smaller ones", async () => {
  system = await createSystem(host(4));
  const small = [await create(1), await create(1)];
  for (const id of small) await reaches(id, "running");
  const large = await create(4);
  await waits(large);
  await system.database.query(
    "UPDATE sandbox.runs SET waiting_since = waiting_since - interval '61 s' WHERE sandbox_id = $1::uuid RETURNING 1 AS one",
    large,
  );
  const late = await create(1);
  await waits(late);
  await stop(small[0] ?? "");
  await reaches(small[0] ?? "", "stopped");
  await waits(late);
  await stop(small[1] ?? "");
  await reaches(large, "running");
  await waits(late);
});

test("overcommit lets more be placed than the host has", async () => {
  system = await createSystem({ ...host(2), limits: { cpuOvercommit: 1.5 } });
  const three = [await create(1), await create(1), await create(1)];
  for (const id of three) await reaches(id, "running");
  await waits(await create(1));
});

test("the engine may refuse all the same: then it waits until the engine has room", async () => {
  system = await createSystem({ engine: { room: { vcpus: 1, memoryMib: 64 * 1024 } } });
  const first = await create(1);
  await reaches(first, "running");
  const second = await create(1);
  await waits(second);
  await stop(first);
  await reaches(second, "running");
});

test("the next orchestrator counts what the one before it placed", async () => {
  system = await createSystem(host(2));
  const two = [await create(1), await create(1)];
  for (const id of two) await reaches(id, "running");
  await system.stopFirst();
  const third = await create(1);
  const initial = await believed(system.database);
  const capacity = { vcpus: 2, memoryMib: 4096 };
  await system.orchestrate(createSimulatedEngine({ features: FEATURES, initial, capacity }));
  await waits(third);
  await stop(two[0] ?? "");
  await reaches(third, "running");
});
