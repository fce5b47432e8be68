import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MemberRole } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
const at = { seconds: 1_795_248_930n, nanos: 120_417_000 };
const midnight = { seconds: 1_795_219_200n, nanos: 0 };

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  const { accounts, organization, billing } = gateway.services;
  accounts.calls.length = 0;
  for (const given of [organization, billing])
    for (const method of Object.keys(given)) Reflect.deleteProperty(given, method);
});

const get = (url: string) => gateway.call("GET", url);
const asked = () => gateway.services.accounts.calls.map(({ method, request }) => [method, request]);

const ROUTES = [
  "/v1/members",
  "/v1/events",
  `/v1/events/${ID}`,
  "/v1/quotas",
  "/v1/billing/usage",
  "/v1/billing/usage/sandbox",
  "/v1/billing/usage/storage",
];
const PAGED = ["/v1/members", "/v1/events"];
const WINDOWS = ROUTES.filter((url) => url.startsWith("/v1/billing/"));

describe("every route", () => {
  test.each(ROUTES)("%s needs a key", async (url) => {
    const headers = { authorization: undefined };
    expect((await gateway.call("GET", url, undefined, { headers })).status).toBe(401);
    expect(asked()).toEqual([]);
  });

  test.each(ROUTES)("%s is about the key's organization", async (url) => {
    await get(url);
    const actor = { kind: "api_key", api_key_id: "key-1", name: "a key" };
    expect(gateway.services.accounts.calls.map(({ caller }) => caller)).toEqual([
      { orgId: ORG_ID, actor, requestId: expect.any(String) },
    ]);
  });

  test.each(ROUTES)("%s takes no other method", async (url) => {
    expect(await gateway.call("POST", url, "{}")).toMatchObject({ status: 405 });
  });
});

describe("members", () => {
  const member = { id: ID, userId: ORG_ID, email: "ada@example.org", joinedAt: at };

  test("are a page, with null for what they lack", async () => {
    gateway.services.organization.listMembers = async () => ({
      members: [
        { ...member, role: MemberRole.OWNER },
        {
          ...member,
          role: MemberRole.VIEWER,
          displayName: "Ada",
          avatarUrl: "https://a.example/a",
        },
      ],
    });
    const plain = { id: ID, user_id: ORG_ID, email: "ada@example.org" };
    const joined_at = "2026-11-21T08:15:30.120Z";
    expect((await get("/v1/members")).body).toEqual({
      data: [
        { ...plain, display_name: null, avatar_url: null, role: "owner", joined_at },
        {
          ...plain,
          display_name: "Ada",
          avatar_url: "https://a.example/a",
          role: "viewer",
          joined_at,
        },
      ],
      has_more: false,
      next_cursor: null,
    });
  });

  test.each([
    ["owner", MemberRole.OWNER],
    ["admin", MemberRole.ADMIN],
    ["member", MemberRole.MEMBER],
    ["viewer", MemberRole.VIEWER],
  ])("may be %s", async (word, role) => {
    gateway.services.organization.listMembers = async () => ({ members: [{ ...member, role }] });
    expect((await get("/v1/members")).body.data).toMatchObject([{ role: word }]);
  });
});

describe("pages", () => {
  test.each(PAGED)("%s asks for what the query says", async (url) => {
    await get(`${url}?limit=7&cursor=abc`);
    await get(url);
    expect(asked().map(([, request]) => request)).toEqual([
      expect.objectContaining({ pageSize: 7, pageToken: "abc" }),
      expect.objectContaining({ pageSize: 0, pageToken: "" }),
    ]);
  });

  test.each(PAGED)("%s says where the next one begins", async (url) => {
    gateway.services.organization.listMembers = async () => ({ nextPageToken: "next" });
    gateway.services.organization.listEvents = async () => ({ nextPageToken: "next" });
    expect((await get(url)).body).toEqual({ data: [], has_more: true, next_cursor: "next" });
  });

  test.each(PAGED)("%s refuses a cursor that its service refuses", async (url) => {
    const refuse = async () => {
      const faults = [{ field: "page_token", message: "is not a cursor of this list" }];
      throw new ServiceError("INVALID_REQUEST", "no", { faults });
    };
    Object.assign(gateway.services.organization, { listMembers: refuse, listEvents: refuse });
    expect(faultPaths(await get(`${url}?cursor=x`))).toEqual(["cursor"]);
  });

  test.each(
    PAGED.flatMap((url) =>
      [
        ["limit=0", ["limit"]],
        ["limit=101", ["limit"]],
        ["limit=1.5", ["limit"]],
        ["cursor=&limit=x", ["cursor", "limit"]],
        ["cursor=a&cursor=b", ["cursor"]],
      ].map(([query, paths]) => [`${url}?${query}`, paths] as const),
    ),
  )("%s is refused", async (url, paths) => {
    expect(faultPaths(await get(url)).sort()).toEqual(paths);
    expect(asked()).toEqual([]);
  });
});

describe("events", () => {
  const event = { id: ID, orgId: ORG_ID, category: "sandbox", eventType: "sandbox_created" };
  const system = { kind: "system", code: "idle_timeout", label: "Idle time-out" };
  const answer = (actor: object, payload?: object) => {
    const given = { ...event, actor, timestamp: at, ...(payload ? { payload } : {}) };
    gateway.services.organization.getEvent = async () => ({ event: given as never });
    gateway.services.organization.listEvents = async () => ({ events: [given as never] });
  };

  test.each([
    [{ kind: "user", user_id: ID, label: "Ada", redacted_email: "a***@example.org" }],
    [{ kind: "api_key", api_key_id: ID, name: "ci" }],
    [system],
    [{ kind: "ssh_key", key_id: ID, fingerprint: "SHA256:x", label: "laptop" }],
    [{ kind: "ssh_key", key_id: ID, fingerprint: "SHA256:x", label: null }],
  ])("have an actor such as %j, of whom nothing else shows", async (actor) => {
    answer({ ...actor, email: "ada@example.org", internal: 1 }, { a: [1, { b: null }] });
    const shown = {
      id: ID,
      org_id: ORG_ID,
      category: "sandbox",
      event_type: "sandbox_created",
      actor,
      payload: { a: [1, { b: null }] },
      timestamp: "2026-11-21T08:15:30.120417Z",
    };
    expect((await get(`/v1/events/${ID}`)).body).toEqual(shown);
    expect((await get("/v1/events")).body).toEqual({
      data: [shown],
      has_more: false,
      next_cursor: null,
    });
  });

  test("have an empty payload where there is nothing to say", async () => {
    answer(system);
    expect((await get(`/v1/events/${ID}`)).body.payload).toEqual({});
  });

  test.each([[{}], [{ kind: "robot" }], [{ kind: "user", user_id: ID }]])(
    "of an actor %j are this server's fault",
    async (actor) => {
      answer(actor);
      expect((await get(`/v1/events/${ID}`)).status).toBe(500);
    },
  );

  test("are asked for by id, in whatever case", async () => {
    answer(system);
    await get(`/v1/events/${ID.toUpperCase()}`);
    expect(asked()).toEqual([["getEvent", expect.objectContaining({ eventId: ID })]]);
  });

  test("that are not there, or somebody else's, are 404", async () => {
    const error = { code: "event_not_found", message: "resource not found", details: null };
    expect(await get(`/v1/events/${ID}`)).toMatchObject({ status: 404, body: { error } });
    expect(faultPaths(await get("/v1/events/no-uuid"))).toEqual(["event_id"]);
  });

  test("are filtered as the query says, to the nanosecond", async () => {
    const since = "2026-11-21T08:15:30.120417Z";
    const until = encodeURIComponent("2026-11-21T10:15:30.120417001+02:00");
    await get(`/v1/events?event_type=sandbox_created&since=${since}&until=${until}&limit=5`);
    expect(asked()).toEqual([
      [
        "listEvents",
        expect.objectContaining({
          eventType: "sandbox_created",
          since: expect.objectContaining(at),
          until: expect.objectContaining({ ...at, nanos: 120_417_001 }),
          pageSize: 5,
        }),
      ],
    ]);
  });

  test("are not filtered where the query says nothing", async () => {
    await get("/v1/events?future=1");
    const [[, request] = []] = asked();
    expect(request).toMatchObject({ eventType: "" });
    expect(request).not.toHaveProperty("since");
    expect(request).not.toHaveProperty("until");
  });

  test.each([
    ["event_type=", ["event_type"]],
    ["event_type=a&event_type=b", ["event_type"]],
    ["event_type=%00", ["event_type"]],
    ["since=yesterday&until=&limit=0&event_type=", ["event_type", "limit", "since", "until"]],
    ["since=2026-11-22T00:00:00Z&until=2026-11-21T00:00:00Z&limit=0", ["limit", "since"]],
  ])("are refused as ?%s", async (query, paths) => {
    expect(faultPaths(await get(`/v1/events?${query}`)).sort()).toEqual(paths);
    expect(asked()).toEqual([]);
  });
});

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
