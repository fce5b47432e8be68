import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../runtime/errors.ts";
import { ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
const WINDOWS = ["/v1/billing/usage", "/v1/billing/usage/sandbox", "/v1/billing/usage/storage"];
const at = { seconds: 1_795_248_930n, nanos: 120_417_000 };
const midnight = { seconds: 1_795_219_200n, nanos: 0 };

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  const { accounts, billing } = gateway.services;
  accounts.calls.length = 0;
  for (const method of Object.keys(billing)) Reflect.deleteProperty(billing, method);
});

const get = (url: string) => gateway.call("GET", url);
const asked = () => gateway.services.accounts.calls.map(({ method, request }) => [method, request]);

describe("quotas", () => {
  test("are null where they are unlimited", async () => {
    const { body } = await get("/v1/quotas");
    expect(body).toEqual({
      max_sandboxes: null,
      max_concurrent_ephemeral_running: null,
      max_concurrent_persistent_running: null,
      max_vcpus_per_sandbox: null,
      max_memory_mib_per_sandbox: null,
      max_disk_size_mib_per_sandbox: null,
      max_uptime_minutes_per_sandbox: null,
      max_total_storage_gib: null,
      included_storage_gib: null,
      included_disk_gib_hours: null,
      included_vcpu_hours: null,
      included_memory_gib_hours: null,
      total_sandboxes: 0,
      concurrent_ephemeral_running: 0,
      concurrent_persistent_running: 0,
      vcpu_hours_used: 0,
      memory_gib_hours_used: 0,
      hard_cap: false,
      pool_exhausted: false,
      is_suspended: false,
    });
  });

  test("are what they are, 0 too", async () => {
    gateway.services.billing.getQuotas = async () => ({
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
        includedMemoryGibHours: 12,
      },
      totalSandboxes: BigInt(Number.MAX_SAFE_INTEGER),
      concurrentEphemeralRunning: 14n,
      concurrentPersistentRunning: 15n,
      vcpuHoursUsed: 16.25,
      memoryGibHoursUsed: 17.5,
      hardCap: true,
      poolExhausted: true,
      isSuspended: true,
    });
    expect(Object.values((await get("/v1/quotas")).body)).toEqual([
      ...[0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
      ...[Number.MAX_SAFE_INTEGER, 14, 15, 16.25, 17.5],
      ...[true, true, true],
    ]);
  });

  test("of an organization that is gone are 404", async () => {
    gateway.services.billing.getQuotas = async () => {
      throw new ServiceError("ORG_NOT_FOUND", "gone");
    };
    const error = { code: "org_not_found", message: "org not found", details: null };
    expect(await get("/v1/quotas")).toMatchObject({ status: 404, body: { error } });
  });
});

describe("usage", () => {
  test("is summed up, without what is not of the contract", async () => {
    gateway.services.billing.getUsage = async () => ({
      periodStart: midnight,
      periodEnd: at,
      lines: [{ name: "vcpu", quantity: 1.5, unit: "vcpu_hours", amountCents: 8n }],
      totalCents: BigInt(Number.MAX_SAFE_INTEGER),
      projectedSpendCents: 13n,
      daily: [{ date: midnight, metric: "vcpu", quantity: 1.5 }],
      storageGib: 0,
      currency: "EUR",
    });
    expect((await get("/v1/billing/usage")).body).toEqual({
      period_start: "2026-11-21T00:00:00.000Z",
      period_end: "2026-11-21T08:15:30.120417Z",
      line_items: [{ name: "vcpu", quantity: 1.5, unit: "vcpu_hours", amount_cents: 8 }],
      total_cents: Number.MAX_SAFE_INTEGER,
      projected_spend_cents: 13,
      daily: [{ date: "2026-11-21T00:00:00.000Z", metric: "vcpu", quantity: 1.5 }],
      storage_gib: 0,
    });
  });

  test("has no storage where none was measured", async () => {
    expect((await get("/v1/billing/usage")).body).toMatchObject({
      line_items: [],
      daily: [],
      storage_gib: null,
    });
  });

  test("is told by sandbox and day, with a directory", async () => {
    gateway.services.billing.listSandboxUsage = async () => ({
      rows: [
        { sandboxId: ID, day: midnight, vcpuSeconds: 0.001, memMibSeconds: 2, diskMibSeconds: 0 },
      ],
      sandboxes: [{ id: ID, name: "n", slug: "s" }],
    });
    expect((await get("/v1/billing/usage/sandbox")).body).toEqual({
      rows: [
        {
          sandbox_id: ID,
          day: "2026-11-21T00:00:00.000Z",
          vcpu_seconds: 0.001,
          mem_mib_seconds: 2,
          disk_mib_seconds: 0,
        },
      ],
      sandboxes: [{ id: ID, name: "n", slug: "s" }],
    });
  });

  test("is told by volume and day, the host volume having no name", async () => {
    gateway.services.billing.listStorageUsage = async () => ({
      rows: [{ volumeId: ID, day: midnight, mibSeconds: 1e15 }],
      volumes: [{ id: ID }, { id: ORG_ID, name: "cache" }],
    });
    expect((await get("/v1/billing/usage/storage")).body).toEqual({
      rows: [{ volume_id: ID, day: "2026-11-21T00:00:00.000Z", mib_seconds: 1e15 }],
      volumes: [
        { id: ID, name: null },
        { id: ORG_ID, name: "cache" },
      ],
    });
  });

  test.each(WINDOWS)("%s asks for the window of the query", async (url) => {
    await get(`${url}?since=2026-11-21T00:00:00Z&until=2026-11-21T08:15:30.120417Z`);
    await get(`${url}?until=2026-11-21T08:15:30.120417Z`);
    const window = { since: expect.objectContaining(midnight), until: expect.objectContaining(at) };
    const [[, both] = [], [, one] = []] = asked();
    expect(both).toMatchObject({ window });
    expect(one).toMatchObject({ window: { until: window.until } });
    expect(one).not.toHaveProperty("window.since");
  });

  test.each(WINDOWS)("%s takes a point for a window", async (url) => {
    const now = "2026-11-21T08:15:30Z";
    expect((await get(`${url}?since=${now}&until=${now}`)).status).toBe(200);
  });

  test.each(
    WINDOWS.flatMap((url) =>
      [
        ["since=2026-11-21", ["since"]],
        ["since=x&until=2026-02-30T00:00:00Z", ["since", "until"]],
        ["since=2026-11-21T00:00:00.000000001Z&until=2026-11-21T00:00:00Z", ["since"]],
        ["since=2026-11-21T00:00:00Z&since=2026-11-21T00:00:00Z", ["since"]],
      ].map(([query, paths]) => [`${url}?${query}`, paths] as const),
    ),
  )("%s is refused", async (url, paths) => {
    expect(faultPaths(await get(url)).sort()).toEqual(paths);
    expect(asked()).toEqual([]);
  });

  test.each([
    ["window.since", "since"],
    ["window.until", "until"],
    ["window", "since"],
    ["until", "until"],
  ])("is refused at %s by its service, which the public reads as %s", async (field, path) => {
    gateway.services.billing.getUsage = async () => {
      const faults = [{ field, message: "must be at most 92 days apart" }];
      throw new ServiceError("INVALID_REQUEST", "no", { faults });
    };
    expect(faultPaths(await get("/v1/billing/usage"))).toEqual([path]);
  });
});
