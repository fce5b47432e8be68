import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { BillingService } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import { SandboxService } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { Metrics } from "../../../runtime/metrics/metrics.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import type { CapContext } from "../../../services/billing/context.ts";
import { enforceCaps } from "../../../services/billing/domain/enforce-caps.ts";
import { createBillingService } from "../../../services/billing/service.ts";
import { startBillingService } from "../../../services/billing/start.ts";
import { createStopSandbox } from "../../../services/billing/stop-sandbox.ts";
import { createStore } from "../../../services/billing/store.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import { createSandboxService } from "../../../services/sandbox/service.ts";
import { type Bench, createBench, createInput, setEngine } from "../sandbox/support.ts";
import { as, insertRuns, newOrganization } from "./support.ts";

const HOUR = 3_600_000;
const ACTOR = { kind: "system", code: "pool_exhausted", label: "Included hours used up" };

let bench: Bench;
let caller: Caller;
let errors: unknown[];
let now: number | undefined;
beforeEach(async () => {
  bench = await createBench();
  await setEngine(bench.database);
  caller = await newOrganization(bench.database);
  errors = [];
  now = undefined;
});
afterEach(() => bench.close());

const inMemory = { log: console, freeze: true };
const sandboxes = () =>
  createClient(
    SandboxService,
    createInProcessTransport(
      (router) => router.service(SandboxService, createSandboxService(bench.ctx)),
      inMemory,
    ),
  );
const context = (poolGraceMs = 0): CapContext => {
  const store = createStore(bench.database);
  return {
    store: { ...store, now: async () => now ?? (await store.now()) },
    stopSandbox: createStopSandbox(sandboxes()),
    poolGraceMs,
    onError: (error) => errors.push(error),
  };
};
const billing = () =>
  createClient(
    BillingService,
    createInProcessTransport(
      (router) => router.service(BillingService, createBillingService(context())),
      inMemory,
    ),
  );

/** Puts the organization on a hard-capped plan. */
async function cap(limits: { includedVcpuHours?: number; includedMemoryGibHours?: number }) {
  const plan = { name: "capped", currency: "USD", hardCap: true, limits };
  await billing().setPlan({ plan });
  await billing().assignPlan({ plan: "capped" }, as(caller));
}

/** A sandbox that is up. */
async function running(): Promise<string> {
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
  return id;
}

const statusOf = async (id: string) => (await change.getSandbox(bench.ctx, caller, { id })).status;
const pools = async () => {
  const rows = await bench.database.query<{ pool: string | null }>(
    "SELECT billing.limits($1::uuid)->>'exhausted_pool' AS pool",
    caller.orgId,
  );
  return rows[0]?.pool;
};
const events = () =>
  bench.database.query<{ type: string; actor: unknown; payload: Record<string, unknown> }>(
    `SELECT event_type AS type, actor, payload FROM organization.events
     WHERE org_id = $1::uuid AND (payload ? 'pool' OR event_type = 'sandbox_stop_requested') ORDER BY timestamp, id`,
    caller.orgId,
  );

/** Hours of one vCPU and one GiB that are over, in April; that is where the clock stands then. */
async function usedHours(hours: number) {
  now = Date.parse("2026-04-20T00:00:00Z");
  await insertRuns(bench.database, [
    {
      orgId: caller.orgId,
      memoryMib: 1024,
      runningAt: "2026-04-10T00:00:00Z",
      machineEndedAt: new Date(Date.parse("2026-04-10T00:00:00Z") + hours * HOUR).toISOString(),
    },
  ]);
}

describe("a pool that is used up", () => {
  test.each(["rolled up", "not rolled up"])("is found whether use is %s", async (how) => {
    await cap({ includedVcpuHours: 10 });
    await usedHours(10 - 1 / HOUR);
    if (how === "rolled up") await context().store.rollUp(100);
    await enforceCaps(context());
    expect(await events()).toEqual([]);
    await usedHours(1 / HOUR);
    if (how === "rolled up") await context().store.rollUp(100);
    await enforceCaps(context());
    expect(await events()).toEqual([
      {
        type: "quota_changed",
        actor: ACTOR,
        payload: { pool_exhausted: true, pool: "included_vcpu_hours", month: "2026-04-01" },
      },
    ]);
  });

  test("is found once, however many look", async () => {
    await cap({ includedMemoryGibHours: 5 });
    await usedHours(6);
    await Promise.all(Array.from({ length: 8 }, () => enforceCaps(context(HOUR))));
    await enforceCaps(context(HOUR));
    expect(await events()).toHaveLength(1);
  });

  test("shows in the quotas, even before it was found, and in the limits that admission reads", async () => {
    await cap({ includedVcpuHours: 0 });
    const quotas = () => billing().getQuotas({}, as(caller));
    expect(await quotas()).toMatchObject({ hardCap: true, poolExhausted: true });
    expect(await pools()).toBeNull();
    await enforceCaps(context());
    expect(await pools()).toBe("included_vcpu_hours");
  });

  test("is given back when the limits change, and another may be used up then", async () => {
    await cap({ includedVcpuHours: 5, includedMemoryGibHours: 5 });
    await usedHours(6);
    await enforceCaps(context());
    const set = [{ limit: "included_vcpu_hours", value: 50 }];
    await billing().setOverrides({ set }, as(caller));
    await enforceCaps(context());
    await billing().setOverrides({ set: [{ limit: "included_memory_gib_hours" }] }, as(caller));
    await enforceCaps(context());
    await enforceCaps(context());
    expect((await events()).map(({ payload }) => [payload.pool, payload.pool_exhausted])).toEqual([
      ["included_vcpu_hours", true],
      ["included_vcpu_hours", false],
      ["included_memory_gib_hours", true],
      ["included_memory_gib_hours", false],
    ]);
  });

  test("is measured by what the quotas say, across the month's start too", async () => {
    await cap({ includedVcpuHours: 1_000 });
    now = Date.parse("2026-04-20T00:00:00Z");
    const { orgId } = caller;
    await insertRuns(bench.database, [
      { orgId, runningAt: "2026-03-31T20:00:00Z", machineEndedAt: "2026-04-01T02:00:00.001Z" },
      { orgId, runningAt: "2026-03-30T20:00:00Z", machineEndedAt: "2026-03-31T02:00:00Z" },
    ]);
    await context().store.rollUp(100);
    await insertRuns(bench.database, [
      {
        orgId,
        vcpus: 3,
        runningAt: "2026-03-31T23:00:00Z",
        machineEndedAt: "2026-04-01T05:00:00Z",
      },
      { orgId, vcpus: 5, memoryMib: 4096, runningAt: "2026-03-31T23:00:00Z" },
      { orgId, runningAt: "2026-04-10T00:00:00Z", stopAdmittedAt: "2026-04-10T07:00:00Z" },
    ]);
    const month = { start: Date.parse("2026-04-01T00:00:00Z"), day: 20_544 };
    const [capped] = await context().store.listCapped(now, month);
    expect(capped).toMatchObject({
      orgId,
      used: { vcpu: BigInt((2 + 15 + 5 * 19 * 24 + 7) * HOUR + 1) },
      rates: { vcpu: 5n, memory: 4096n },
      exhaustion: undefined,
    });
    const { vcpuHoursUsed } = await billing().getQuotas({}, as(caller));
    expect(vcpuHoursUsed).toBeCloseTo(2 + 15 + 5 * 19 * 24 + 7 + 1 / HOUR, 9);
  });

  test("is full again in the next month", async () => {
    await cap({ includedVcpuHours: 5 });
    await usedHours(6);
    await enforceCaps(context());
    now = Date.parse("2026-05-01T00:00:00Z");
    await enforceCaps(context());
    await enforceCaps(context());
    expect((await events()).map(({ payload }) => payload.pool_exhausted)).toEqual([true, false]);
  });

  test("means nothing without a hard cap", async () => {
    await cap({ includedVcpuHours: 5 });
    await usedHours(6);
    await enforceCaps(context());
    await billing().assignPlan({ plan: "sample-metered" }, as(caller));
    await enforceCaps(context());
    await enforceCaps(context());
    expect((await events()).map(({ payload }) => payload.pool_exhausted)).toEqual([true, false]);
    const quotas = await billing().getQuotas({}, as(caller));
    expect(quotas).toMatchObject({ hardCap: false, poolExhausted: false });
  });
});

describe("what runs then", () => {
  test("is stopped after the grace, starting or running, by whoever notices; the rest is left alone", async () => {
    const up = await running();
    const starting = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
    const idle = await createSandbox(bench.ctx, caller, createInput({}));
    await cap({ includedVcpuHours: 0 });
    await enforceCaps(context(HOUR));
    await enforceCaps(context(HOUR));
    expect(await statusOf(up)).toBe("running");
    await enforceCaps(context(0));
    expect([await statusOf(up), await statusOf(starting.id), await statusOf(idle.id)]).toEqual([
      "stopping",
      "stopping",
      "created",
    ]);
    await enforceCaps(context(0));
    const stops = (await events()).filter(({ type }) => type === "sandbox_stop_requested");
    expect(stops.map(({ actor }) => actor)).toEqual([ACTOR, ACTOR]);
    expect(errors).toEqual([]);
  });

  test("is stopped some at a time, and each time only if the pool is still used up", async () => {
    const up = await Promise.all(Array.from({ length: 25 }, running));
    await cap({ includedVcpuHours: 0 });
    await enforceCaps(context());
    const ctx = context();
    let stopped = 0;
    const stopSandbox = async (sandbox: { orgId: string; sandboxId: string }) => {
      stopped += 1;
      await ctx.stopSandbox(sandbox);
    };
    expect(await enforceCaps({ ...ctx, stopSandbox })).toBe(0);
    expect([stopped > 0, stopped < up.length]).toEqual([true, true]);
    const before = stopped;
    await billing().assignPlan({ plan: "sample-metered" }, as(caller));
    await enforceCaps({ ...ctx, stopSandbox });
    expect(stopped).toBe(before);
    await billing().assignPlan({ plan: "capped" }, as(caller));
    await enforceCaps(ctx);
    while ((await enforceCaps(ctx)) === 0);
    const statuses = await Promise.all(up.map(statusOf));
    expect(new Set(statuses)).toEqual(new Set(["stopping"]));
  });

  test("does not keep other organizations from being looked at, however long a stop takes", async () => {
    await running();
    await cap({ includedVcpuHours: 0 });
    await enforceCaps(context());
    const first = caller;
    caller = await newOrganization(bench.database);
    await billing().assignPlan({ plan: "capped" }, as(caller));
    const stuck = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const stopSandbox = () => {
      asked.resolve();
      return stuck.promise;
    };
    const look = enforceCaps({ ...context(), stopSandbox });
    await asked.promise;
    expect([await pools(), first.orgId === caller.orgId]).toEqual(["included_vcpu_hours", false]);
    stuck.resolve();
    await look;
  });

  test("is tried again in the next round where a stop failed", async () => {
    const up = await running();
    await cap({ includedVcpuHours: 0 });
    await enforceCaps(context());
    await setEngine(bench.database, { alive: false });
    await enforceCaps(context());
    expect([await statusOf(up), errors.length]).toEqual(["running", 1]);
    await setEngine(bench.database);
    await enforceCaps(context());
    expect(await statusOf(up)).toBe("stopping");
  });

  test("does not mind what was stopped or destroyed meanwhile", async () => {
    const { stopSandbox } = context();
    const stopped = await running();
    await change.stopSandbox(bench.ctx, caller, { id: stopped });
    const gone = await running();
    await change.destroySandbox(bench.ctx, caller, { id: gone });
    for (const sandboxId of [stopped, gone]) await stopSandbox({ orgId: caller.orgId, sandboxId });
  });

  test("the next look comes when the first pool will be used up", async () => {
    await cap({ includedVcpuHours: 10, includedMemoryGibHours: 10_000 });
    now = Date.parse("2026-04-20T10:00:00Z");
    const open = (vcpus: number, runningAt: string) =>
      insertRuns(bench.database, [{ orgId: caller.orgId, vcpus, runningAt }]);
    await open(3, "2026-04-20T08:00:00Z");
    // 4 of 10 hours are left at 3 a go.
    now = Date.parse("2026-04-20T11:19:59Z");
    expect(await enforceCaps(context())).toBe(1_000);
    await open(1, "2026-04-20T11:19:59Z");
    expect(await enforceCaps(context())).toBe(750);
  });
});

test("with the service running all of it happens by itself", async () => {
  const service = startBillingService({
    database: bench.database,
    sandboxes: sandboxes(),
    poolGraceSecs: 0,
    metrics: new Metrics(),
    onError: (error) => errors.push(error),
  });
  try {
    const up = await running();
    await cap({ includedVcpuHours: 0 });
    await expect.poll(() => statusOf(up), { timeout: 15_000 }).toBe("stopping");
    await report(bench.ctx, up, 1, {
      kind: "ended",
      endedAt: new Date(),
      cause: "stopped",
      message: "",
    });
    const metered = () =>
      bench.database.query<{ n: number }>("SELECT count(*)::int AS n FROM billing.run_days");
    await expect.poll(async () => (await metered())[0]?.n, { timeout: 15_000 }).toBeGreaterThan(0);
  } finally {
    await service.stop();
  }
  expect(errors).toEqual([]);
});
