import { afterEach, expect, test, vi } from "vitest";
import type { LeadingContext } from "../../../services/orchestrator/context.ts";
import { startFailed } from "../../../services/orchestrator/domain/end.ts";
import { startRun } from "../../../services/orchestrator/domain/start-run.ts";
import { createReports } from "../../../services/orchestrator/reports.ts";
import type { StartingRun } from "../../../services/orchestrator/store.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSystem, type System } from "./support.ts";

// A leader that was replaced may not know it yet: nothing that it says may change anything any more.

let system: System;
afterEach(() => system.close());

const statusOf = async (id: string) => (await system.get(id)).status;
const patient = { timeout: 15_000 };
const events = () =>
  system.database.query<{ type: string }>(
    "SELECT event_type AS type FROM organization.events ORDER BY timestamp, id",
  );

test("reports of a former epoch change nothing, those of the present one do", async () => {
  system = await createSystem({ engine: { delays: { start: 600_000, stop: 0 } } });
  const { sandboxes, ctx, caller } = system;
  const [first, gone] = [await system.create(), await system.create()];
  await expect.poll(async () => (await system.get(first.id)).statusReason).toBeNull();
  await change.destroySandbox(ctx, caller, { id: gone.id });
  const reports = (epoch: bigint) => createReports(sandboxes, { engine: "simulated", epoch });
  const run = { sandboxId: first.id, generation: 1 };
  const before = await events();
  for (const late of [reports(7n), createReports(sandboxes, { engine: "other", epoch: 1n })]) {
    expect(await late.placed(run)).toBe(false);
    expect(await late.waiting(run, "scheduling")).toBe(false);
    expect(await late.running(run, new Date())).toBe(false);
    expect(await late.workloadEnded(run, new Date())).toBe(false);
    expect(await late.ended(run, startFailed("late"))).toBe(false);
    expect(await late.removed(gone.id)).toBe(false);
  }
  expect(await system.get(first.id)).toMatchObject({ status: "starting", statusReason: null });
  expect(await events()).toEqual(before);
  expect(await reports(1n).ended(run, startFailed("in time"))).toBe(true);
  expect(await system.get(first.id)).toMatchObject({ lastFailureMessage: "in time" });
});

test("a start that could not be placed is no call of the engine", async () => {
  system = await createSystem();
  const ensureRunning = vi.fn();
  const reports = { placed: async () => false };
  const ctx = { engine: { ensureRunning }, reports } as unknown as LeadingContext;
  const run = { sandboxId: "s", generation: 1, startMsLeft: 1_000 } as StartingRun;
  expect(await startRun(ctx, run, new AbortController().signal)).toBe("rest");
  expect(ensureRunning).not.toHaveBeenCalled();
});

/** Freezes the first orchestrator while it does something; the second one takes over on the same engine. */
async function takeOver(): Promise<() => Promise<void>> {
  const thaw = system.freezeFirst();
  system.engine.close = async () => {};
  await system.orchestrate(system.engine);
  await expect
    .poll(() => system.database.query("SELECT epoch::int FROM orchestrator.leases"), patient)
    .toEqual([{ epoch: 2 }]);
  return async () => {
    thaw();
    await system.stopFirst();
  };
}

test("a frozen leader's failed start does not end the start that its heir made", async () => {
  system = await createSystem();
  let frozen: Promise<() => Promise<void>> | undefined;
  system.engine.settings.faultOf = () => {
    const first = frozen === undefined;
    frozen ??= takeOver();
    return first ? { kind: "failure", message: "too late" } : undefined;
  };
  const { id } = await system.create();
  await expect.poll(() => statusOf(id), patient).toBe("running");
  const thaw = await frozen;
  await thaw?.();
  expect(await system.get(id)).toMatchObject({ status: "running", generation: 1 });
  expect((await events()).map(({ type }) => type)).not.toContain("sandbox_failed");
});

test("a frozen leader that misses a machine does not end what its heir sees", async () => {
  system = await createSystem();
  const { id } = await system.create();
  await expect.poll(() => statusOf(id), patient).toBe("running");
  const { promise, resolve } = Promise.withResolvers<() => Promise<void>>();
  vi.spyOn(system.engine, "list").mockImplementationOnce(async () => {
    resolve(takeOver());
    return [];
  });
  const thaw = await promise;
  await thaw();
  expect(await system.get(id)).toMatchObject({ status: "running", generation: 1 });
  expect((await events()).map(({ type }) => type)).not.toContain("sandbox_failed");
});
