import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { MemberRole } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
const at = { seconds: 1_795_248_930n, nanos: 120_417_000 };

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  const { accounts, organization } = gateway.services;
  accounts.calls.length = 0;
  for (const method of Object.keys(organization)) Reflect.deleteProperty(organization, method);
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
