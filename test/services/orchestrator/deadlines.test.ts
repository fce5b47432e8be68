import { afterEach, expect, test, vi } from "vitest";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import type { Status } from "../../../services/sandbox/domain/sandbox.ts";
import { createInput, newCaller } from "../sandbox/support.ts";
import { createSystem, type System } from "./support.ts";

// An engine that is away, that hangs, or that lost what it had.

let system: System;
afterEach(() => system.close());

const patient = { timeout: 15_000 };
async function reaches(id: string, status: Status) {
  await expect.poll(async () => (await system.get(id)).status, patient).toBe(status);
  return system.get(id);
}
const stop = (id: string) => change.stopSandbox(system.ctx, system.caller, { id });

async function running() {
  const { id } = await system.create();
  await reaches(id, "running");
  return id;
}

test("while the engine is away starts are `scheduling`, unplaced, and not tried one by one", async () => {
  system = await createSystem();
  await running();
  const ensureRunning = vi.spyOn(system.engine, "ensureRunning");
  const list = vi.spyOn(system.engine, "list");
  system.engine.setAvailable(false);
  const first = await system.create();
  const heard = () => list.mock.settledResults.some(({ type }) => type === "rejected");
  await expect.poll(heard, patient).toBe(true);
  const unplaced = () =>
    system.database.query(
      "SELECT 1 AS one FROM sandbox.runs r JOIN sandbox.sandboxes s ON s.id = r.sandbox_id WHERE placed_at IS NULL AND status_reason = 'scheduling'",
    );
  await expect.poll(unplaced).toHaveLength(1);
  const more = await Promise.all(Array.from({ length: 20 }, () => system.create()));
  await new Promise((go) => setTimeout(go, 2_500));
  // Perhaps the one by which it was found out.
  const tried = ensureRunning.mock.calls.length;
  expect(tried).toBeLessThanOrEqual(1);
  expect(await unplaced()).toHaveLength(21);
  system.engine.setAvailable(true);
  for (const { id } of [first, ...more]) await reaches(id, "running");
  expect(ensureRunning).toHaveBeenCalledTimes(tried + 21);
});

test("a start that came up behind an engine that went away has its room, and runs", async () => {
  system = await createSystem({ engine: { capacity: { vcpus: 1, memoryMib: 4096 } } });
  const { engine, ctx } = system;
  const original = engine.ensureRunning.bind(engine);
  vi.spyOn(engine, "ensureRunning").mockImplementationOnce(async (allocation, signal) => {
    await original(allocation, signal);
    engine.setAvailable(false);
    return original(allocation, signal);
  });
  const { id } = await system.create();
  const away = () => engine.list().then(Boolean, () => "away");
  await expect.poll(away).toBe("away");
  const reason = async () => (await system.get(id)).statusReason;
  await expect.poll(reason).toBe("scheduling");
  // Of an organization whose turn it is.
  const other = newCaller();
  const rival = await createSandbox(ctx, other, createInput({}, { start: true }));
  engine.setAvailable(true);
  expect(await reaches(id, "running")).toMatchObject({ generation: 1 });
  const rivals = async () => (await change.getSandbox(ctx, other, { id: rival.id })).statusReason;
  await expect.poll(rivals).toBe("insufficient_capacity");
});

test("starts that a dead orchestrator had placed go back to the queue while the engine is away", async () => {
  system = await createSystem({ engine: { delays: { start: 600_000, stop: 0 } } });
  const { id } = await system.create();
  await expect.poll(async () => (await system.get(id)).statusReason).toBeNull();
  await system.stopFirst();
  const heir = createSimulatedEngine({ features: FEATURES });
  heir.setAvailable(false);
  await system.orchestrate(heir);
  await expect.poll(async () => (await system.get(id)).statusReason, patient).toBe("scheduling");
  heir.setAvailable(true);
  await reaches(id, "running");
});

test("a stop that the engine does not get done in time fails, and is made good when it is back", async () => {
  system = await createSystem({ limits: { stopTimeoutSecs: 2 } });
  const id = await running();
  system.engine.setAvailable(false);
  await stop(id);
  expect(await reaches(id, "failed")).toMatchObject({
    lastFailureMessage: "the machine could not be stopped within 2 s",
  });
  system.engine.setAvailable(true);
  await expect.poll(async () => (await system.engine.list())[0]?.state, patient).toBe("ended");
});

test("a stop that hangs in the engine fails in time, too", async () => {
  system = await createSystem({ limits: { stopTimeoutSecs: 1, stopGraceMs: 0 } });
  const id = await running();
  const hang = vi.spyOn(system.engine, "stop").mockReturnValue(new Promise(() => {}));
  await stop(id);
  await reaches(id, "failed");
  hang.mockRestore();
});

test("a stop that was late only because nobody worked on it is a stop", async () => {
  system = await createSystem({ limits: { stopTimeoutSecs: 2 } });
  const { engine, database } = system;
  const id = await running();
  engine.close = async () => {};
  await system.stopFirst();
  await stop(id);
  await database.query(
    "UPDATE sandbox.runs SET stop_admitted_at = stop_admitted_at - interval '1 hour' RETURNING 1 AS one",
  );
  await system.orchestrate(engine);
  await reaches(id, "stopped");
});

test("a start that no engine has is stopped at once though the engine is away; a removal waits for it", async () => {
  system = await createSystem();
  const { ctx, caller, engine, database } = system;
  const destroyed = await running();
  engine.setAvailable(false);
  const { id } = await system.create();
  await expect
    .poll(() => database.query("SELECT 1 AS one FROM sandbox.runs WHERE placed_at IS NULL"))
    .toHaveLength(1);
  await change.destroySandbox(ctx, caller, { id: destroyed });
  await stop(id);
  expect(await reaches(id, "stopped")).toMatchObject({ lastFailureMessage: null });
  const open = () => database.query("SELECT 1 AS one FROM sandbox.runs WHERE closed_at IS NULL");
  await database.query(
    "UPDATE sandbox.runs SET stop_admitted_at = stop_admitted_at - interval '1 hour' WHERE closed_at IS NULL RETURNING 1 AS one",
  );
  await new Promise((go) => setTimeout(go, 2_000));
  expect(await open()).toHaveLength(1);
  engine.setAvailable(true);
  await expect.poll(open, patient).toEqual([]);
  expect(await engine.list()).toEqual([]);
});

test("a lost machine ends when it was last seen, also after hours without an orchestrator", async () => {
  system = await createSystem();
  const { database } = system;
  const [old, young] = [await running(), await running()];
  await expect
    .poll(() =>
      database.query("SELECT 1 AS one FROM orchestrator.leases WHERE observed_at IS NOT NULL"),
    )
    .toHaveLength(1);
  await system.stopFirst();
  await database.query(
    `WITH seen AS (UPDATE orchestrator.leases SET observed_at = now() - interval '3 hours')
     UPDATE sandbox.runs SET admitted_at = now() - span, placed_at = now() - span, running_at = now() - span
     FROM (VALUES ($1::uuid, interval '5 hours'), ($2::uuid, interval '2 hours')) AS given (id, span)
     WHERE sandbox_id = id RETURNING 1 AS one`,
    old,
    young,
  );
  await system.orchestrate(createSimulatedEngine({ features: FEATURES }));
  for (const id of [old, young]) await reaches(id, "failed");
  const hours = await database.query(
    `SELECT round(extract(epoch FROM closed_at - machine_ended_at) / 3600)::int AS hours FROM sandbox.runs
     WHERE sandbox_id = ANY($1::uuid[]) ORDER BY running_at`,
    [old, young],
  );
  // The younger one was not up yet when its engine was last compared.
  expect(hours).toEqual([{ hours: 3 }, { hours: 2 }]);
});
