import { afterEach, expect, test } from "vitest";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import type { Status } from "../../../services/sandbox/domain/sandbox.ts";
import { believed, createSystem, type System, type SystemOptions } from "./support.ts";

const open: System[] = [];
afterEach(async () => {
  for (const system of open.splice(0)) await system.close();
});

async function start(options?: SystemOptions): Promise<System> {
  const system = await createSystem(options);
  open.push(system);
  return system;
}

async function reaches({ get }: System, id: string, status: Status) {
  await expect.poll(async () => (await get(id)).status, { timeout: 15_000 }).toBe(status);
  return get(id);
}

test("a whole life: started, stopped, started again, destroyed, and nothing is left", async () => {
  const system = await start();
  const { ctx, caller, engine, database } = system;
  const { id } = await system.create();
  expect(await reaches(system, id, "running")).toMatchObject({ startedAt: expect.any(Date) });
  await change.stopSandbox(ctx, caller, { id });
  await reaches(system, id, "stopped");
  await change.startSandbox(ctx, caller, { id });
  expect(await reaches(system, id, "running")).toMatchObject({ generation: 2, stoppedAt: null });
  expect(await engine.list()).toMatchObject([{ sandboxId: id, generation: 2, state: "running" }]);
  await change.destroySandbox(ctx, caller, { id });
  await expect.poll(() => engine.list()).toEqual([]);
  await expect
    .poll(() => database.query("SELECT id FROM sandbox.sandboxes"), { timeout: 5_000 })
    .toEqual([]);
});

test("a start that cannot succeed fails with the engine's reason", async () => {
  const fault = { kind: "failure", message: "no such image" } as const;
  const system = await start({ engine: { faultOf: () => fault } });
  const { id } = await system.create();
  expect(await reaches(system, id, "failed")).toMatchObject({
    lastFailureMessage: "no such image",
  });
});

test("a machine that ends by itself: cleanly, by a crash, out of memory, or lost", async () => {
  const system = await start();
  const ids = await Promise.all([1, 2, 3, 4].map(async () => (await system.create()).id));
  for (const id of ids) await reaches(system, id, "running");
  const [clean = "", crashed = "", full = "", lost = ""] = ids;
  system.engine.endMachine(clean, { exitCode: 0 });
  system.engine.endMachine(crashed, { exitCode: 3 });
  system.engine.endMachine(full, { exitCode: 137, outOfMemory: true });
  await system.engine.remove(lost);
  await reaches(system, clean, "stopped");
  const failed = [crashed, full, lost].map((id) => reaches(system, id, "failed"));
  expect((await Promise.all(failed)).map((sandbox) => sandbox.lastFailureMessage)).toEqual([
    "the machine ended with exit code 3",
    "the machine ran out of memory",
    "the engine lost the machine",
  ]);
});

test("a start without room waits, says so, and runs when there is room", async () => {
  const system = await start({ engine: { capacity: { vcpus: 1, memoryMib: 1024 } } });
  const first = await system.create();
  await reaches(system, first.id, "running");
  const second = await system.create();
  await expect
    .poll(async () => (await system.get(second.id)).statusReason)
    .toBe("insufficient_capacity");
  await change.stopSandbox(system.ctx, system.caller, { id: first.id });
  await reaches(system, second.id, "running");
});

test("one that waits for room can be stopped and destroyed, and does not wait for ever", async () => {
  const system = await start({
    engine: { capacity: { vcpus: 1, memoryMib: 1024 } },
    limits: { queueTimeoutSecs: 3 },
  });
  await reaches(system, (await system.create()).id, "running");
  const stopped = await system.create();
  const destroyed = await system.create();
  const late = await system.create();
  await change.stopSandbox(system.ctx, system.caller, { id: stopped.id });
  await reaches(system, stopped.id, "stopped");
  await change.destroySandbox(system.ctx, system.caller, { id: destroyed.id });
  expect(await reaches(system, late.id, "failed")).toMatchObject({
    lastFailureMessage: "the engine had no room within 3 s",
  });
  const rows = await system.database.query<{ id: string }>("SELECT id FROM sandbox.sandboxes");
  expect(rows.map(({ id }) => id)).not.toContain(destroyed.id);
});

test("a spec larger than the whole host fails at once, and says so", async () => {
  const system = await start({ engine: { capacity: { vcpus: 4, memoryMib: 1024 } } });
  const large = [
    [{ vcpus: 5 }, "it asks for 5 vCPUs, more than the engine's whole host can give (4)"],
    [
      { memoryMib: 1025 },
      "it asks for 1025 MiB of memory, more than the engine's whole host can give (1024 MiB)",
    ],
  ] as const;
  for (const [resources, lastFailureMessage] of large) {
    const { id } = await system.create({ resources });
    expect(await reaches(system, id, "failed")).toMatchObject({ lastFailureMessage });
  }
  const { id } = await system.create({ resources: { vcpus: 4, memoryMib: 1024 } });
  await reaches(system, id, "running");
});

test("a start that takes long is given up at a stop, and at its time limit", async () => {
  const system = await start({
    engine: { delays: { start: 60_000, stop: 0 } },
    limits: { startTimeoutSecs: 4 },
  });
  const unwanted = await system.create();
  const late = await system.create();
  await expect.poll(async () => (await system.get(unwanted.id)).statusReason).toBeNull();
  await change.stopSandbox(system.ctx, system.caller, { id: unwanted.id });
  await reaches(system, unwanted.id, "stopped");
  expect(await reaches(system, late.id, "failed")).toMatchObject({
    lastFailureMessage: "the machine did not come up within 4 s",
  });
});

test("the time limit of a run stops it", async () => {
  const system = await start();
  const { id } = await system.create({ lifecycle: { maxDurationSecs: 1n } });
  expect(await reaches(system, id, "stopped")).toMatchObject({ lastFailureMessage: null });
});

test("while the engine is away starts wait as scheduling, and nothing that runs is given up", async () => {
  const system = await start();
  const before = await system.create();
  await reaches(system, before.id, "running");
  system.engine.setAvailable(false);
  const { id } = await system.create();
  await new Promise((go) => setTimeout(go, 1_500));
  expect((await system.get(id)).status).toBe("starting");
  expect((await system.get(before.id)).status).toBe("running");
  system.engine.setAvailable(true);
  await reaches(system, id, "running");
  expect((await system.get(before.id)).generation).toBe(1);
});

test("a machine that no run wants is stopped", async () => {
  const system = await start();
  const { id } = await system.create();
  await reaches(system, id, "running");
  await system.database.query(
    `UPDATE sandbox.runs SET phase = 'ended', outcome = 'failed', closed_at = now() + interval '1 s' RETURNING sandbox_id`,
  );
  await expect
    .poll(async () => (await system.engine.list())[0]?.state, { timeout: 15_000 })
    .toBe("ended");
});

test("of two orchestrators one leads; when it goes the other takes over what it led", async () => {
  const system = await start();
  const { id } = await system.create();
  await reaches(system, id, "running");
  // What the second engine knows is what the first one runs then.
  const initial = await believed(system.database);
  const heir = createSimulatedEngine({ features: FEATURES, initial });
  await system.orchestrate(heir);
  const second = await system.create();
  await reaches(system, second.id, "running");
  expect((await heir.list()).map(({ sandboxId }) => sandboxId)).toEqual([id]);
  await system.stopFirst();
  const third = await system.create();
  await reaches(system, third.id, "running");
  const now = (await heir.list()).map(({ sandboxId }) => sandboxId);
  expect(now.sort()).toEqual([id, third.id].sort());
});

test("200 starts at once all run, each once", async () => {
  const system = await start({ engine: { delays: { start: 5, stop: 0 } } });
  const made = await Promise.all(Array.from({ length: 200 }, () => system.create()));
  for (const { id } of made) await reaches(system, id, "running");
  const machines = await system.engine.list();
  expect(machines).toHaveLength(200);
  expect(machines.every(({ generation }) => generation === 1)).toBe(true);
});
