import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { PlanSchema } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { as, type BillingBench, createBillingBench, refusalOf } from "./support.ts";

let bench: BillingBench;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());

type GivenPlan = MessageInitShape<typeof PlanSchema>;

const OPERATOR = { kind: "system", code: "operator", label: "Operator" };
const planName = () => `plan-${randomUUID().slice(0, 8)}`;
const setPlan = async (plan: GivenPlan) =>
  (await bench.client.setPlan({ plan: { currency: "USD", ...plan } })).plan;
const assign = async (caller: Caller, plan: string) =>
  (await bench.client.assignPlan({ plan }, as(caller))).subscription;
const subscription = async (caller: Caller) =>
  (await bench.client.getSubscription({}, as(caller))).subscription;

// Later tests find the default that they expect.
afterEach(() => setPlan({ name: "unlimited", isDefault: true }));

describe("plans", () => {
  test("those of the first start are listed by name, one of them the default", async () => {
    const { plans } = await bench.client.listPlans({});
    expect(plans.slice(-3).map(({ name }) => name)).toEqual([
      "sample-free",
      "sample-metered",
      "unlimited",
    ]);
    expect(plans.filter(({ isDefault }) => isDefault)).toMatchObject([
      { name: "unlimited", limits: {}, currency: "USD", hardCap: false },
    ]);
    expect(plans.find(({ name }) => name === "sample-free")).toMatchObject({
      hardCap: true,
      limits: { maxSandboxes: 20, includedVcpuHours: 50 },
    });
  });

  test("every field is kept, and replaced as a whole", async () => {
    const all = {
      name: planName(),
      currency: "EUR",
      hardCap: true,
      isDefault: false,
      prices: {
        vcpuHour: 1n,
        memoryGibHour: 2n,
        diskGibHour: 3n,
        storageGibHour: 1_000_000_000_000n,
      },
      limits: {
        maxSandboxes: 0,
        maxConcurrentEphemeralRunning: 2,
        maxConcurrentPersistentRunning: 3,
        maxVcpusPerSandbox: 4,
        maxMemoryMibPerSandbox: 5,
        maxDiskSizeMibPerSandbox: 6,
        maxUptimeMinutesPerSandbox: 7,
        maxTotalStorageGib: 8,
        includedStorageGib: 9,
        includedDiskGibHours: 10,
        includedVcpuHours: 11,
        includedMemoryGibHours: 2_147_483_647,
      },
    };
    const kept = async () =>
      (await bench.client.listPlans({})).plans.find(({ name }) => name === all.name);
    expect(await setPlan(all)).toMatchObject(all);
    expect(await kept()).toMatchObject(all);
    await setPlan({ name: all.name, limits: { maxSandboxes: 1 } });
    expect(await kept()).toMatchObject({
      currency: "USD",
      hardCap: false,
      prices: { vcpuHour: 0n, storageGibHour: 0n },
    });
    expect((await kept())?.limits).toEqual(expect.objectContaining({ maxSandboxes: 1 }));
    expect((await kept())?.limits?.includedVcpuHours).toBeUndefined();
  });

  test("what has a price and no pool includes nothing, but under a hard cap", async () => {
    const name = planName();
    const prices = { vcpuHour: 9n, diskGibHour: 1n };
    const included = async (plan: object) => (await setPlan({ name, ...plan }))?.limits;
    const limits = { includedDiskGibHours: 7 };
    expect(await included({ prices, limits })).toMatchObject({
      includedVcpuHours: 0,
      includedDiskGibHours: 7,
    });
    expect((await included({ prices, limits }))?.includedMemoryGibHours).toBeUndefined();
    expect((await included({ prices, limits, hardCap: true }))?.includedVcpuHours).toBeUndefined();
  });

  test.each([
    ["a name", { name: "Not A Name" }, "plan.name"],
    ["a currency", { name: "good", currency: "money" }, "plan.currency"],
    ["a limit", { name: "good", limits: { maxSandboxes: -1 } }, "plan.limits.max_sandboxes"],
    ["a price", { name: "good", prices: { vcpuHour: -1n } }, "plan.prices.vcpu_hour"],
  ])("%s that does not fit is refused", async (_, plan, field) => {
    expect(await refusalOf(setPlan(plan))).toEqual({ reason: "INVALID_REQUEST", fields: [field] });
  });

  test("exactly one is the default: it moves at once, and cannot just be dropped", async () => {
    const name = planName();
    const defaults = async () =>
      (await bench.client.listPlans({})).plans
        .filter(({ isDefault }) => isDefault)
        .map((p) => p.name);
    expect(await refusalOf(setPlan({ name: "unlimited" }))).toEqual({
      reason: "INVALID_REQUEST",
      fields: ["plan.is_default"],
    });
    await setPlan({ name, isDefault: true });
    expect(await defaults()).toEqual([name]);
    await Promise.all(
      Array.from({ length: 8 }, () => setPlan({ name: planName(), isDefault: true })),
    );
    expect(await defaults()).toHaveLength(1);
  });
});

describe("what an organization has", () => {
  test("is the default plan until it is put on one, and again when it is taken off", async () => {
    const caller = await bench.organization();
    const name = planName();
    await setPlan({ name, limits: { maxSandboxes: 5 } });
    expect(await subscription(caller)).toMatchObject({
      plan: { name: "unlimited" },
      byDefault: true,
    });
    expect(await assign(caller, name)).toMatchObject({ plan: { name }, byDefault: false });
    expect((await bench.client.getQuotas({}, as(caller))).limits?.maxSandboxes).toBe(5);
    expect(await assign(caller, "")).toMatchObject({
      plan: { name: "unlimited" },
      byDefault: true,
    });
  });

  test("overrides win, also one that is unlimited", async () => {
    const caller = await bench.organization();
    const name = planName();
    await setPlan({ name, limits: { maxSandboxes: 5, maxVcpusPerSandbox: 2 } });
    await assign(caller, name);
    const set = [{ limit: "max_sandboxes" }, { limit: "max_vcpus_per_sandbox", value: 0 }];
    const answer = await bench.client.setOverrides({ set }, as(caller));
    expect(answer.subscription?.overrides.map(({ limit, value }) => [limit, value])).toEqual([
      ["max_sandboxes", undefined],
      ["max_vcpus_per_sandbox", 0],
    ]);
    const { limits } = await bench.client.getQuotas({}, as(caller));
    expect([limits?.maxSandboxes, limits?.maxVcpusPerSandbox]).toEqual([undefined, 0]);
    await bench.client.setOverrides({ clear: ["max_sandboxes"] }, as(caller));
    const { limits: cleared } = await bench.client.getQuotas({}, as(caller));
    expect([cleared?.maxSandboxes, cleared?.maxVcpusPerSandbox]).toEqual([5, 0]);
  });

  test("unknown names are refused, all of them", async () => {
    const caller = await bench.organization();
    const set = [
      { limit: "max_sandboxes", value: 1 },
      { limit: "max_fun", value: 1 },
    ];
    const clear = ["maxSandboxes", "max_sandboxes"];
    expect(await refusalOf(bench.client.setOverrides({ set, clear }, as(caller)))).toEqual({
      reason: "INVALID_REQUEST",
      fields: ["set[1].limit", "clear[0]", "clear[1]"],
    });
    expect((await subscription(caller))?.overrides).toEqual([]);
  });

  test("an unknown plan or organization is refused", async () => {
    const caller = await bench.organization();
    const nobody = { ...caller, orgId: randomUUID() };
    expect(await refusalOf(assign(caller, "none"))).toMatchObject({ reason: "PLAN_NOT_FOUND" });
    const refused = await Promise.all(
      [
        assign(nobody, "unlimited"),
        bench.client.setOverrides({}, as(nobody)),
        bench.client.getSubscription({}, as(nobody)),
        bench.client.getQuotas({}, as(nobody)),
      ].map(refusalOf),
    );
    expect(refused.map(({ reason }) => reason)).toEqual(Array(4).fill("ORG_NOT_FOUND"));
    expect(await bench.changes(caller.orgId)).toEqual([]);
  });

  test("what it takes of its limits, and whether it is suspended", async () => {
    const caller = await bench.organization();
    const quotas = () => bench.client.getQuotas({}, as(caller));
    expect(await quotas()).toMatchObject({
      totalSandboxes: 0n,
      isSuspended: false,
      poolExhausted: false,
    });
    await bench.database.query(
      "INSERT INTO sandbox.places VALUES ($1::uuid, 7, 2, 3) RETURNING org_id",
      caller.orgId,
    );
    await bench.database.query(
      "UPDATE organization.organizations SET suspended_at = now() WHERE id = $1::uuid RETURNING id",
      caller.orgId,
    );
    expect(await quotas()).toMatchObject({
      totalSandboxes: 7n,
      concurrentEphemeralRunning: 2n,
      concurrentPersistentRunning: 3n,
      isSuspended: true,
    });
  });
});

describe("events", () => {
  test("a change of one organization writes one, with the caller as its actor, what was and what is", async () => {
    const caller = await bench.organization();
    const name = planName();
    await setPlan({ name, limits: { maxSandboxes: 5 }, prices: { vcpuHour: 9n } });
    await assign(caller, name);
    const [event, ...more] = await bench.changes(caller.orgId);
    expect(more).toEqual([]);
    expect(event).toEqual({
      actor: caller.actor,
      payload: {
        plan: name,
        before: expect.objectContaining({ plan: "unlimited", by_default: true, limits: {} }),
        after: {
          plan: name,
          by_default: false,
          limits: { max_sandboxes: 5, included_vcpu_hours: 0 },
          hard_cap: false,
          currency: "USD",
          prices: { vcpu_hour: 9, memory_gib_hour: 0, disk_gib_hour: 0, storage_gib_hour: 0 },
        },
      },
    });
  });

  test("nothing changed, nothing written", async () => {
    const caller = await bench.organization();
    const name = planName();
    await setPlan({ name });
    await assign(caller, name);
    const set = [{ limit: "max_sandboxes", value: 1 }];
    await bench.client.setOverrides({ set }, as(caller));
    expect(await bench.changes(caller.orgId)).toHaveLength(2);
    await assign(caller, name);
    await bench.client.setOverrides({ set, clear: ["max_total_storage_gib"] }, as(caller));
    await setPlan({ name });
    await setPlan({ name: "unlimited", isDefault: true });
    expect(await bench.changes(caller.orgId)).toHaveLength(2);
  });

  test("a plan's change writes one for each organization on it whose terms change", async () => {
    const [on, overridden, other] = [
      await bench.organization(),
      await bench.organization(),
      await bench.organization(),
    ];
    const name = planName();
    await setPlan({ name, limits: { maxSandboxes: 5 } });
    await assign(on, name);
    await assign(overridden, name);
    await bench.client.setOverrides(
      { set: [{ limit: "max_sandboxes", value: 1 }] },
      as(overridden),
    );
    const count = async (caller: Caller) => (await bench.changes(caller.orgId)).length;
    const before = [await count(on), await count(overridden), await count(other)] as const;
    await setPlan({ name, limits: { maxSandboxes: 6 } });
    // The override keeps the change from the second.
    expect([await count(on), await count(overridden), await count(other)]).toEqual([
      before[0] + 1,
      before[1],
      before[2],
    ]);
    const last = (await bench.changes(on.orgId)).at(-1);
    expect(last).toMatchObject({
      actor: OPERATOR,
      payload: {
        before: { limits: { max_sandboxes: 5 } },
        after: { limits: { max_sandboxes: 6 } },
      },
    });
  });

  test("another default writes one for each organization without a plan of its own", async () => {
    const [none, own] = [await bench.organization(), await bench.organization()];
    await assign(own, "sample-free");
    const name = planName();
    await setPlan({ name, isDefault: true, limits: { maxSandboxes: 3 } });
    expect((await bench.changes(none.orgId)).map(({ payload }) => payload.plan)).toEqual([name]);
    expect(await bench.changes(own.orgId)).toHaveLength(1);
  });

  test("many at once follow each other: each begins where the one before ended", async () => {
    const caller = await bench.organization();
    await Promise.all(
      Array.from({ length: 20 }, (_, value) =>
        bench.client.setOverrides({ set: [{ limit: "max_sandboxes", value }] }, as(caller)),
      ),
    );
    const events = await bench.changes(caller.orgId);
    expect(events).toHaveLength(20);
    for (const [i, { payload }] of events.entries())
      if (i > 0) expect(payload.before).toEqual(events[i - 1]?.payload.after);
  });
});
