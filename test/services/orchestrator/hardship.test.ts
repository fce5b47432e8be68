import { afterEach, expect, test, vi } from "vitest";
import { EngineTrouble, EngineUnavailable } from "../../../services/orchestrator/engines/engine.ts";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import type { Status } from "../../../services/sandbox/domain/sandbox.ts";
import { createInput, newCaller } from "../sandbox/support.ts";
import { believed, createSystem, type System, type SystemOptions } from "./support.ts";

// What goes wrong around an orchestrator, and what must go on all the same.

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

/** So many that no more work of their kind is begun. */
const MANY = 50;

test("many starts that take long hold up neither a stop nor a destroy", async () => {
  const system = await start();
  const { ctx, caller, engine } = system;
  const [stopped, destroyed] = await Promise.all([system.create(), system.create()]);
  for (const { id } of [stopped, destroyed]) await reaches(system, id, "running");
  engine.settings.delays.start = 600_000;
  for (let i = 0; i < MANY; i += 1) await system.create();
  await change.stopSandbox(ctx, caller, { id: stopped.id });
  await change.destroySandbox(ctx, caller, { id: destroyed.id });
  await reaches(system, stopped.id, "stopped");
  await expect
    .poll(async () => (await engine.list()).map(({ sandboxId }) => sandboxId))
    .not.toContain(destroyed.id);
});

test("many removals that fail hold up nothing else", async () => {
  const system = await start();
  const { ctx, caller, engine } = system;
  const remove = vi.spyOn(engine, "remove").mockRejectedValue(new EngineUnavailable("busy"));
  for (let i = 0; i < MANY; i += 1) {
    const { id } = await system.create();
    await change.destroySandbox(ctx, caller, { id });
  }
  await expect.poll(() => remove.mock.calls.length).toBeGreaterThan(10);
  const { id } = await system.create();
  await reaches(system, id, "running");
});

test("a start that no engine takes fails at the queue's time limit, and says that none answered", async () => {
  const system = await start({ limits: { queueTimeoutSecs: 4, startTimeoutSecs: 1 } });
  system.engine.setAvailable(false);
  const { id } = await system.create();
  expect(await reaches(system, id, "failed")).toMatchObject({
    lastFailureMessage: "the engine did not answer within 4 s",
  });
});

test("a start that alone troubles an engine which answers keeps its place, and fails at its time limit", async () => {
  const system = await start({ limits: { startTimeoutSecs: 4, queueTimeoutSecs: 60 } });
  const { engine, database } = system;
  const ensureRunning = engine.ensureRunning.bind(engine);
  const troubled = vi.spyOn(engine, "ensureRunning").mockImplementation((allocation, signal) => {
    if (allocation.name !== "odd") return ensureRunning(allocation, signal);
    return Promise.reject(new EngineTrouble("the engine answered 500"));
  });
  const { id } = await system.create({}, "odd");
  const tries = () => troubled.mock.calls.filter(([{ name }]) => name === "odd").length;
  await expect.poll(tries, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
  const placed =
    "SELECT sandbox_id FROM sandbox.runs WHERE sandbox_id = $1::uuid AND placed_at IS NOT NULL";
  expect(await database.query(placed, id)).toHaveLength(1);
  expect(await system.get(id)).toMatchObject({ status: "starting", statusReason: null });
  const other = await system.create();
  await reaches(system, other.id, "running");
  expect(await reaches(system, id, "failed")).toMatchObject({
    lastFailureMessage: "the machine did not come up within 4 s",
  });
});

test("a machine that came up in time runs, however late that is seen", async () => {
  const system = await start({ limits: { startTimeoutSecs: 2 } });
  const { database } = system;
  const { id } = await system.create();
  await reaches(system, id, "running");
  const initial = await believed(database);
  await system.stopFirst();
  await database.query(
    `WITH run AS (UPDATE sandbox.runs SET phase = 'starting', running_at = NULL, due_at = admitted_at,
                    placed_at = placed_at - interval '90 days', admitted_at = admitted_at - interval '90 days')
     UPDATE sandbox.sandboxes SET status = 'starting' RETURNING id`,
  );
  await system.orchestrate(createSimulatedEngine({ features: FEATURES, initial }));
  await reaches(system, id, "running");
});

test("credentials that cannot be opened any more fail the start, with a reason", async () => {
  const unseal = () => {
    throw new Error("unable to authenticate data");
  };
  const system = await start({ unseal });
  const inline = { case: "inline" as const, value: { username: "u", password: "p" } };
  const { id } = await system.create({ registry: { mode: inline } });
  expect(await reaches(system, id, "failed")).toMatchObject({
    lastFailureMessage: expect.stringContaining("cannot be opened"),
  });
});

test("a run that an orchestrator stopped at its limit, and died, is no crash to the next one", async () => {
  const system = await start();
  const { database } = system;
  const { id } = await system.create({ lifecycle: { maxDurationSecs: 3_600n } });
  await reaches(system, id, "running");
  const initial = await believed(database);
  await system.stopFirst();
  await database.query("UPDATE sandbox.runs SET due_at = now() RETURNING sandbox_id");
  const ended = { state: "ended", endedAt: new Date(), exitCode: 143 } as const;
  await system.orchestrate(
    createSimulatedEngine({
      features: FEATURES,
      initial: initial.map((instance) => ({ ...instance, ...ended })),
    }),
  );
  await expect.poll(async () => (await system.get(id)).status).not.toBe("running");
  expect(await system.get(id)).toMatchObject({ status: "stopped", lastFailureMessage: null });
});

test("an engine that is slow to list is asked once at a time", async () => {
  const system = await start();
  const { engine } = system;
  await reaches(system, (await system.create()).id, "running");
  const { promise, resolve } = Promise.withResolvers<[]>();
  const list = vi.spyOn(engine, "list").mockReturnValue(promise);
  for (let i = 0; i < 5; i += 1) {
    const { id } = await system.create();
    await reaches(system, id, "running");
    await new Promise((go) => setTimeout(go, 120));
  }
  expect(list).toHaveBeenCalledTimes(1);
  list.mockRestore();
  resolve([]);
});

test("a machine of no known sandbox is stopped, and in the end removed", async () => {
  const system = await start({ limits: { orphanDelaySecs: 1 } });
  const { engine, database } = system;
  const [gone, kept] = await Promise.all([system.create(), system.create()]);
  for (const { id } of [gone, kept]) await reaches(system, id, "running");
  await database.query(
    `WITH run AS (DELETE FROM sandbox.runs WHERE sandbox_id = $1::uuid)
     DELETE FROM sandbox.sandboxes WHERE id = $1::uuid RETURNING id`,
    gone.id,
  );
  await expect
    .poll(async () => (await engine.list()).map(({ sandboxId }) => sandboxId), { timeout: 20_000 })
    .toEqual([kept.id]);
  expect(await system.get(kept.id)).toMatchObject({ status: "running", generation: 1 });
});

test("a restart of a sandbox whose old machine could not be stopped in time has one machine", async () => {
  const system = await start({ limits: { startTimeoutSecs: 1 } });
  const { ctx, caller, engine } = system;
  engine.settings.delays.start = 60_000;
  const { id } = await system.create();
  await reaches(system, id, "failed");
  engine.settings.delays.start = 0;
  await change.startSandbox(ctx, caller, { id });
  expect(await reaches(system, id, "running")).toMatchObject({
    generation: 2,
    lastFailureMessage: null,
  });
  expect(await engine.list()).toMatchObject([{ sandboxId: id, generation: 2, state: "running" }]);
});

test("starts take turns among organizations, the oldest of each first", async () => {
  const system = await start();
  system.engine.settings.delays.start = 300;
  const started: string[] = [];
  system.engine.settings.faultOf = ({ orgId }) => {
    started.push(orgId);
    return undefined;
  };
  const other = newCaller();
  const many = Array.from({ length: 3 * MANY }, () => system.create());
  await Promise.all(many);
  await createSandbox(system.ctx, other, createInput({}, { start: true }));
  await expect.poll(() => started.length, { timeout: 15_000 }).toBe(3 * MANY + 1);
  // Those that were under way when it came, and one round of turns.
  expect(started.indexOf(other.orgId)).toBeLessThan(2 * MANY);
});
