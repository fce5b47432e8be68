import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { SandboxStatus } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import { body } from "./support/bodies.ts";
import { ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());
beforeEach(() => {
  gateway.services.calls.length = 0;
  gateway.services.sandboxes.clear();
});

const asked = () => gateway.services.calls.map(({ method, request }) => [method, request]);

describe("create", () => {
  test.each([
    ["", false, "created"],
    ["?start=false", false, "created"],
    ["?start=true", true, "starting"],
    ["?start=true&future=1", true, "starting"],
  ])("%s", async (query, start, status) => {
    const answer = await gateway.call("POST", `/v1/sandboxes${query}`, body({ name: "n" }));
    expect(answer).toMatchObject({ status: 200, body: { name: "n", status, org_id: ORG_ID } });
    expect(asked()).toEqual([["createSandbox", expect.objectContaining({ name: "n", start })]]);
  });
});

describe("list", () => {
  test("asks for what the query says", async () => {
    const labels = encodeURIComponent('{"team":"a b","x":""}');
    await gateway.call(
      "GET",
      `/v1/sandboxes?limit=7&cursor=abc&labels=${labels}&status=running&status=failed`,
    );
    expect(asked()).toEqual([
      [
        "listSandboxes",
        expect.objectContaining({
          pageSize: 7,
          pageToken: "abc",
          labels: { team: "a b", x: "" },
          statuses: [SandboxStatus.RUNNING, SandboxStatus.FAILED],
        }),
      ],
    ]);
  });

  test("asks for nothing in particular by default, and ignores what it does not know", async () => {
    expect((await gateway.call("GET", "/v1/sandboxes?sort=name&__proto__=x")).status).toBe(200);
    expect(asked()).toEqual([
      ["listSandboxes", expect.objectContaining({ pageSize: 0, pageToken: "", statuses: [] })],
    ]);
  });

  test.each([
    ["a page with more behind it", "next", { has_more: true, next_cursor: "next" }],
    ["the last page", undefined, { has_more: false, next_cursor: null }],
  ])("%s", async (_name, nextPageToken, page) => {
    const { id } = gateway.services.add();
    gateway.services.sandbox.listSandboxes = async () => ({
      sandboxes: [...gateway.services.sandboxes.values()],
      ...(nextPageToken ? { nextPageToken } : {}),
    });
    const answer = await gateway.call("GET", "/v1/sandboxes");
    delete gateway.services.sandbox.listSandboxes;
    expect(answer).toMatchObject({ status: 200, body: { data: [{ id }], ...page } });
    expect(Object.keys(answer.body).sort()).toEqual(["data", "has_more", "next_cursor"]);
  });

  test.each([
    ["limit=0", ["limit"]],
    ["limit=101", ["limit"]],
    ["limit=x", ["limit"]],
    ["limit=1.0", ["limit"]],
    ["limit=", ["limit"]],
    ["limit=1&limit=2", ["limit"]],
    ["cursor=", ["cursor"]],
    ["cursor=a&cursor=b", ["cursor"]],
    ["cursor=%00", ["cursor"]],
    ["status=Running", ["status[0]"]],
    ["status=running&status=gone", ["status[1]"]],
    ["labels=team", ["labels"]],
    ["labels=%5B%5D", ["labels"]],
    ["labels=null", ["labels"]],
    ["labels=%7B%22a%22:1%7D", ["labels.a"]],
    ["labels=%7B%22a%22:null%7D", ["labels.a"]],
    ["labels=%7B%22a%22:%22%5Cu0000%22%7D", ["labels.a"]],
    ["labels=%7B%22__proto__%22:%22a%22%7D", ["labels.__proto__"]],
    ["limit=0&status=x&labels=1", ["labels", "limit", "status[0]"]],
  ])("is refused as ?%s", async (query, paths) => {
    const answer = await gateway.call("GET", `/v1/sandboxes?${query}`);
    expect(faultPaths(answer).sort()).toEqual(paths);
    expect(asked()).toEqual([]);
  });
});

describe("by id and by name", () => {
  const verbs = [
    ["GET", "", "getSandbox", "created"],
    ["POST", "/start", "startSandbox", "starting"],
    ["POST", "/stop", "stopSandbox", "stopping"],
  ] as const;

  test.each(verbs)("%s %s", async (method, verb, rpc, status) => {
    const { id, name } = gateway.services.add({ name: "A.b_c-1" });
    for (const [path, key] of [
      [id, { case: "id", value: id }],
      [id.toUpperCase(), { case: "id", value: id }],
      [`by-name/${name}`, { case: "name", value: name }],
      ["by-name/%41.b%5Fc-1", { case: "name", value: name }],
    ] as const) {
      gateway.services.calls.length = 0;
      const answer = await gateway.call(method, `/v1/sandboxes/${path}${verb}`);
      expect(answer).toMatchObject({ status: 200, body: { id, name, status } });
      expect(asked()).toEqual([
        [rpc, expect.objectContaining({ key: expect.objectContaining({ key }) })],
      ]);
    }
  });

  test("DELETE says so, and is 404 the second time", async () => {
    for (const path of [gateway.services.add().id, `by-name/${gateway.services.add().name}`]) {
      const gone = await gateway.call("DELETE", `/v1/sandboxes/${path}`);
      expect(gone).toMatchObject({ status: 200, body: { message: expect.any(String) } });
      expect(await gateway.call("DELETE", `/v1/sandboxes/${path}`)).toMatchObject({
        status: 404,
        body: {
          error: { code: "sandbox_not_found", message: "resource not found", details: null },
        },
      });
    }
  });

  test.each([
    "no-uuid",
    "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b4",
    "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b4g",
    "019a9f2e6f0a7c3e9b573f0d6a1c2b44",
    "by-name",
  ])("%s is no id", async (id) => {
    expect(faultPaths(await gateway.call("GET", `/v1/sandboxes/${id}`))).toEqual(["sandbox_id"]);
    expect(faultPaths(await gateway.call("POST", `/v1/sandboxes/${id}/stop`))).toEqual([
      "sandbox_id",
    ]);
  });

  test.each(["a%20b", "%C3%BC", "a%2Fb", "%00", ".a", "a".repeat(129)])(
    "by-name/%s is nobody's name",
    async (name) => {
      const answer = await gateway.call("GET", `/v1/sandboxes/by-name/${name}`);
      expect(answer).toMatchObject({ status: 404, body: { error: { code: "sandbox_not_found" } } });
      expect(asked()).toEqual([]);
    },
  );

  test("a name of 128 is found, percent-encoded too", async () => {
    const { id } = gateway.services.add({ name: "a".repeat(128) });
    const url = `/v1/sandboxes/by-name/${"%61".repeat(128)}`;
    expect(await gateway.call("GET", url)).toMatchObject({ status: 200, body: { id } });
  });
});

describe("rename", () => {
  test.each([
    [{}, {}],
    [{ name: null, slug: null }, {}],
    [{ name: "new" }, { name: "new" }],
    [{ slug: "new-slug" }, { slug: "new-slug" }],
    [
      { name: "new", slug: "new-slug" },
      { name: "new", slug: "new-slug" },
    ],
  ])("%j", async (sent, changed) => {
    const { id, name, slug } = gateway.services.add();
    const answer = await gateway.call("PATCH", `/v1/sandboxes/${id}`, sent);
    expect(answer).toMatchObject({ status: 200, body: { id, name, slug, ...changed } });
    const [[, request] = []] = asked();
    expect({ name: undefined, slug: undefined, ...changed }).toMatchObject({
      name: (request as { name?: string }).name,
      slug: (request as { slug?: string }).slug,
    });
  });

  test.each([
    [{ name: "" }, ["name"]],
    [{ name: "a b", slug: "A" }, ["name", "slug"]],
    [{ name: 1 }, ["name"]],
    [{ slug: "a" }, ["slug"]],
  ])("is refused as %j", async (sent, paths) => {
    const { id } = gateway.services.add();
    expect(faultPaths(await gateway.call("PATCH", `/v1/sandboxes/${id}`, sent))).toEqual(paths);
  });
});

test("the organization", async () => {
  expect((await gateway.call("GET", "/v1/me/org")).body).toEqual({
    id: ORG_ID,
    name: "Default",
    slug: "default",
    role: "owner",
    mfa_required: false,
    created_at: "2026-11-21T08:14:02.004Z",
    updated_at: "2026-11-21T08:14:02.004Z",
  });
});
