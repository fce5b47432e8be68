import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ServiceError } from "../../runtime/errors.ts";
import { body } from "./support/bodies.ts";
import { KEY } from "./support/fake-services.ts";
import { type Answer, faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(() => gateway.close());

const send = (method: string, url: string, sent?: unknown, key: string | null = "k-1") =>
  gateway.call(method, url, sent, { headers: key === null ? {} : { "idempotency-key": key } });
const create = (more = {}, key?: string | null) => send("POST", "/v1/sandboxes", body(more), key);
const codeOf = ({ status, body: answer }: Answer) => [status, answer?.error?.code ?? null];
const replayed = ({ headers }: Answer) => headers["idempotent-replayed"];
const callers = () => gateway.services.calls.map(({ caller }) => caller);

describe("a repeat gets the first answer again", () => {
  const requests: [string, string, unknown, string][] = [
    ["POST", "/v1/sandboxes", body({ name: "n" }), "createSandbox"],
    ["PATCH", "/v1/sandboxes/{id}", { name: "new" }, "renameSandbox"],
    ["POST", "/v1/sandboxes/{id}/start", {}, "startSandbox"],
    ["POST", "/v1/sandboxes/{id}/stop", {}, "stopSandbox"],
    ["DELETE", "/v1/sandboxes/{id}", undefined, "destroySandbox"],
    ["POST", "/v1/sandboxes/by-name/mine/start", {}, "startSandbox"],
    ["POST", "/v1/sandboxes/by-name/mine/stop", {}, "stopSandbox"],
    ["DELETE", "/v1/sandboxes/by-name/mine", undefined, "destroySandbox"],
  ];

  test.each(requests)("%s %s", async (method, path, sent, rpc) => {
    const url = path.replace("{id}", gateway.services.add({ name: "mine" }).id);
    const first = await send(method, url, sent);
    const second = await send(method, url, sent);
    expect(first.status).toBe(200);
    expect(replayed(first)).toBeUndefined();
    expect(second.body).toEqual(first.body);
    expect([second.status, replayed(second)]).toEqual([200, "true"]);
    const idempotency = { key: "k-1", requestSha256: expect.any(Uint8Array) };
    expect(gateway.services.calls.map(({ method: called }) => called)).toEqual([rpc, rpc]);
    expect(callers()).toMatchObject([{ idempotency }, { idempotency }]);
    expect(callers()[0]?.idempotency?.requestSha256).toHaveLength(32);
    expect(callers()[1]?.idempotency).toEqual(callers()[0]?.idempotency);
  });

  test("though what it is about has changed since", async () => {
    const first = await create({ name: "n" });
    await send("DELETE", `/v1/sandboxes/${first.body.id}`, undefined, null);
    expect((await create({ name: "n" })).body).toEqual(first.body);
    expect(gateway.services.sandboxes.size).toBe(0);
  });

  test("though it was written anew", async () => {
    const image = { type: "oci", reference: "alpine" };
    const first = await send("POST", "/v1/sandboxes", { name: "n", image });
    const turned = '{ "image": {"reference": "alpine", "type": "oci"},\n"name": "\\u006e" }';
    const second = await send("POST", "/v1/sandboxes", turned);
    expect([second.body, replayed(second)]).toEqual([first.body, "true"]);
  });

  test("though it has no body where the first one's was empty", async () => {
    const url = `/v1/sandboxes/${gateway.services.add().id}/start`;
    await send("POST", url, "{}");
    for (const sent of [undefined, "", "{}"])
      expect(replayed(await send("POST", url, sent))).toBe("true");
  });

  test("when it was a refusal, too", async () => {
    await create({ name: "n" }, null);
    gateway.services.sandbox.createSandbox = async () => {
      const metadata = { field: "name", sandbox_id: "x", status: "running" };
      throw new ServiceError("NAME_ALREADY_EXISTS", "taken", { metadata });
    };
    const first = await create({ name: "n" });
    delete gateway.services.sandbox.createSandbox;
    const second = await create({ name: "n" });
    expect(codeOf(first)).toEqual([409, "name_already_exists"]);
    expect([second.status, second.body]).toEqual([first.status, first.body]);
    expect([replayed(first), replayed(second)]).toEqual([undefined, "true"]);
  });

  test.each([
    ["QUOTA_EXCEEDED", 403, "quota_exceeded", { quota: "max_sandboxes", limit: "1", used: "1" }],
    ["SANDBOX_NOT_FOUND", 404, "sandbox_not_found", {}],
    ["INVALID_STATE_TRANSITION", 409, "invalid_state_transition", { from: "x", action: "start" }],
  ] as const)("a refusal such as %s", async (reason, status, code, metadata) => {
    gateway.services.sandbox.startSandbox = async () => {
      throw new ServiceError(reason, "no", { metadata });
    };
    const url = `/v1/sandboxes/${gateway.services.add().id}/start`;
    const [first, second] = [await send("POST", url), await send("POST", url)];
    expect([codeOf(first), codeOf(second)]).toEqual([
      [status, code],
      [status, code],
    ]);
    expect(second.body).toEqual(first.body);
    expect(JSON.stringify(second.body)).not.toContain("replayed");
    expect([replayed(first), replayed(second)]).toEqual([undefined, "true"]);
  });
});

describe("what wrote nothing is not remembered", () => {
  test("a fault, an engine that is away", async () => {
    expect(faultPaths(await create({ name: "", image: 1 }))).toEqual(["image"]);
    gateway.services.sandbox.createSandbox = async () => {
      throw new ServiceError("ORCHESTRATOR_UNREACHABLE", "none");
    };
    expect(codeOf(await create({ name: "a" }))).toEqual([502, "orchestrator_unreachable"]);
    delete gateway.services.sandbox.createSandbox;
    const done = await create({ name: "b" });
    expect([done.status, replayed(done)]).toEqual([200, undefined]);
  });
});

describe("a key that was used for another request is refused", () => {
  const id = "019a9f2e-6f0a-7c3e-9b57-000000000000";
  const first = ["POST", `/v1/sandboxes/${id}/start`, {}] as const;
  const others: [string, string, unknown][] = [
    ["POST", `/v1/sandboxes/${id}/stop`, {}],
    ["POST", `/v1/sandboxes/${id}/start?future=1`, {}],
    ["POST", `/v1/sandboxes/${id}/start`, { future: 1 }],
    ["POST", "/v1/sandboxes/by-name/mine/start", {}],
    ["DELETE", `/v1/sandboxes/${id}`, undefined],
    ["PATCH", `/v1/sandboxes/${id}`, { name: "a" }],
  ];

  test.each(others)("%s %s %j", async (method, url, sent) => {
    gateway.services.add({ name: "mine" });
    expect((await send(...first)).status).toBe(200);
    const before = gateway.services.sandboxes.get(id);
    expect(codeOf(await send(method, url, sent))).toEqual([422, "idempotency_key_reused"]);
    expect(gateway.services.sandboxes.get(id)).toBe(before);
  });

  test("but another key is another matter, and so is none", async () => {
    const ids = [await create(), await create({}, "k-2"), await create({}, null)].map(
      (answer) => answer.body.id,
    );
    expect(new Set(ids).size).toBe(3);
    expect(callers().map(({ idempotency }) => idempotency?.key)).toEqual(["k-1", "k-2", undefined]);
    expect(callers()[2]).not.toHaveProperty("idempotency");
  });

  test("but another organization's is another matter", async () => {
    const first = await create();
    gateway.services.organization.authenticateKey = async () => ({
      orgId: "019a9f2d-11c4-7a0b-8e21-000000000000",
      apiKeyId: "key-2",
      apiKeyName: "another",
    });
    const headers = { "idempotency-key": "k-1", authorization: `Bearer ${KEY}2` };
    const other = await gateway.call("POST", "/v1/sandboxes", body({ name: "x" }), { headers });
    expect(other).toMatchObject({ status: 200, body: { name: "x" } });
    expect(other.body.id).not.toBe(first.body.id);
  });
});

describe("while the first is running", () => {
  const held = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    gateway.services.sandbox.createSandbox = async () => {
      await promise;
      return { sandbox: gateway.services.add() };
    };
    return resolve;
  };

  test("a repeat is told so, another request that the key is taken, another key nothing", async () => {
    const finish = held();
    const first = create();
    await expect.poll(() => gateway.services.calls).toHaveLength(1);
    expect(codeOf(await create())).toEqual([409, "idempotency_in_progress"]);
    expect(codeOf(await create({ name: "x" }))).toEqual([422, "idempotency_key_reused"]);
    expect(gateway.services.calls).toHaveLength(1);
    const other = create({}, "k-2");
    await expect.poll(() => gateway.services.calls).toHaveLength(2);
    finish();
    expect([(await first).status, (await other).status]).toEqual([200, 200]);
    expect(replayed(await create())).toBe("true");
  });

  test("100 at once make one sandbox, and get equal answers or are told to wait", async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => create({ name: "one" })));
    const done = answers.filter(({ status }) => status === 200);
    const busy = answers.filter(({ status }) => status !== 200);
    expect(done.length).toBeGreaterThan(0);
    expect(new Set(done.map(({ body: answer }) => JSON.stringify(answer))).size).toBe(1);
    expect(done.filter((answer) => replayed(answer) === undefined)).toHaveLength(1);
    for (const answer of busy) expect(codeOf(answer)).toEqual([409, "idempotency_in_progress"]);
    expect(gateway.services.sandboxes.size).toBe(1);
    const later = await create({ name: "one" });
    expect([later.body, replayed(later)]).toEqual([done[0]?.body, "true"]);
  });

  test("a failure frees the key", async () => {
    gateway.services.sandbox.createSandbox = async () => {
      throw new Error("broken");
    };
    expect((await create()).status).toBe(500);
    delete gateway.services.sandbox.createSandbox;
    expect((await create()).status).toBe(200);
  });
});

describe("the header", () => {
  const printable = Array.from({ length: 93 }, (_, i) => String.fromCharCode(0x21 + i)).join("");

  test.each([["x"], [printable], ["a b"], ["k".repeat(255)]])("may be %s", async (key) => {
    expect((await create({}, key)).status).toBe(200);
    expect(callers()[0]?.idempotency?.key).toBe(key);
  });

  test.each([[""], ["k".repeat(256)], ["ä"], ["a\tb"], ["\u007f"]])(
    "may not be %j, which is told with every other fault",
    async (key) => {
      expect(faultPaths(await create({}, key))).toEqual(["headers.idempotency-key"]);
      const answer = await send("POST", "/v1/sandboxes?start=x", body({ slug: "A" }), key);
      expect(faultPaths(answer)).toEqual(["start", "slug", "headers.idempotency-key"]);
      expect(faultPaths(await send("DELETE", "/v1/sandboxes/no-uuid", undefined, key))).toEqual([
        "sandbox_id",
        "headers.idempotency-key",
      ]);
      expect(gateway.services.calls).toEqual([]);
    },
  );

  test("may not repeat", async () => {
    const headers = { "idempotency-key": ["a", "b"] } as unknown as Record<string, string>;
    const answer = await gateway.call("POST", "/v1/sandboxes", body(), { headers });
    expect(faultPaths(answer)).toEqual(["headers.idempotency-key"]);
  });

  test.each([["k-1"], ["ä"]])("is ignored on a read: %s", async (key) => {
    gateway.services.add();
    for (const _ of [1, 2]) {
      const answer = await send("GET", "/v1/sandboxes", undefined, key);
      expect([answer.status, replayed(answer)]).toEqual([200, undefined]);
    }
    for (const caller of callers()) expect(caller).not.toHaveProperty("idempotency");
  });
});

test("a body that is nested without end is refused", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const sent = `{"image": {"type": "oci", "reference": "alpine"}, "future": ${deep}}`;
  expect(faultPaths(await send("POST", "/v1/sandboxes", sent))).toEqual(["body"]);
  expect(gateway.services.calls).toEqual([]);
});
