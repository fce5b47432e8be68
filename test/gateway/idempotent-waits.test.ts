import { once } from "node:events";
import { request as httpRequest } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { SandboxStatus } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import { body } from "./support/bodies.ts";
import { KEY, ORG_ID } from "./support/fake-services.ts";
import { type Answer, type Gateway, openGateway } from "./support/gateway.ts";

const URL = "/v1/sandboxes?start=true&wait_for=running&wait_timeout=300";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway({ waitsMax: 2 });
});
afterEach(() => gateway.close());

const create = (url = URL, more = {}) =>
  gateway.call("POST", url, body(more), { headers: { "idempotency-key": "k-1" } });
const start = (url: string) =>
  gateway.call("POST", url, undefined, { headers: { "idempotency-key": "k-1" } });
const calls = (name: string) => gateway.services.calls.filter(({ method }) => method === name);
/** Returns once `n` looks at a sandbox have been made. */
const looked = (n: number) =>
  expect.poll(() => calls("getSandbox").length).toBeGreaterThanOrEqual(n);
const replayed = ({ headers }: Answer) => headers["idempotent-replayed"];

/** Changes the only sandbox there is. */
function become(status: SandboxStatus): void {
  for (const { id } of gateway.services.sandboxes.values()) gateway.services.change(id, { status });
}

describe("a wait that is over", () => {
  test("is kept, and answered again though the sandbox has changed since", async () => {
    const answer = create();
    await looked(1);
    become(SandboxStatus.RUNNING);
    const first = await answer;
    expect(first).toMatchObject({ status: 200, body: { status: "running" } });
    expect(replayed(first)).toBeUndefined();
    expect(gateway.services.idempotency.kept).toEqual([["k-1", first.body]]);
    become(SandboxStatus.FAILED);
    const reads = calls("getSandbox").length;
    for (const _ of [1, 2]) {
      const repeat = await create();
      expect([repeat.status, repeat.body, replayed(repeat)]).toEqual([200, first.body, "true"]);
    }
    // What was kept is answered without another look.
    expect(calls("getSandbox")).toHaveLength(reads);
    expect(gateway.services.idempotency.kept).toHaveLength(1);
    expect(gateway.services.sandboxes.size).toBe(1);
  });

  test("though nothing happened, is kept all the same", async () => {
    const url = "/v1/sandboxes?start=true&wait_for=running&wait_timeout=0";
    const first = await create(url);
    expect(first.body.status).toBe("starting");
    become(SandboxStatus.RUNNING);
    expect((await create(url)).body).toEqual(first.body);
  });

  test("of a start too, whichever way it is named", async () => {
    const { id } = gateway.services.add({ name: "mine" });
    const url = "/v1/sandboxes/by-name/mine/start?wait_for=running";
    const headers = { "idempotency-key": "k-2" };
    const answer = gateway.call("POST", url, undefined, { headers });
    await looked(1);
    gateway.services.change(id, { status: SandboxStatus.RUNNING });
    const first = await answer;
    become(SandboxStatus.STOPPED);
    const repeat = await gateway.call("POST", url, "{}", { headers });
    expect([repeat.body, replayed(repeat)]).toEqual([first.body, "true"]);
  });

  test("is not kept where there is no key", async () => {
    const answer = gateway.call("POST", URL, body());
    await looked(1);
    become(SandboxStatus.RUNNING);
    await answer;
    expect(gateway.services.accounts.calls).toEqual([]);
  });

  test("is answered though it cannot be kept, and the log says so", async () => {
    gateway.services.idempotency.broken = true;
    const answer = create();
    await looked(1);
    become(SandboxStatus.RUNNING);
    expect(await answer).toMatchObject({ status: 200, body: { status: "running" } });
    expect(gateway.logged).toEqual([
      expect.objectContaining({
        level: 40,
        request_id: expect.any(String),
        msg: "an answer could not be kept for repeats",
      }),
    ]);
  });

  test("is answered as whoever was first has kept it", async () => {
    const answer = create();
    await looked(1);
    const [sandbox] = gateway.services.sandboxes.values();
    const { body: now } = await gateway.call("GET", `/v1/sandboxes/${sandbox?.id}`);
    // Another gateway waited for the same, and looked when it was otherwise.
    const earlier = { ...now, status: "failed", last_failure_message: "out of memory" };
    for (const record of gateway.services.idempotency.records.values())
      record.answer = Uint8Array.from(Buffer.from(JSON.stringify(earlier)));
    become(SandboxStatus.RUNNING);
    expect((await answer).body).toEqual(earlier);
    expect((await create()).body).toEqual(earlier);
  });

  test("reads and keeps without the key of the change", async () => {
    const answer = create();
    await looked(1);
    become(SandboxStatus.RUNNING);
    await answer;
    const { calls: seen, accounts } = gateway.services;
    const others = [...seen.filter(({ method }) => method === "getSandbox"), ...accounts.calls];
    expect(others).toHaveLength(3);
    for (const { caller } of others) expect(caller).not.toHaveProperty("idempotency");
  });
});

describe("a wait that broke off", () => {
  test("frees its key, and is taken up again by a repeat", async () => {
    await gateway.app.listen({ port: 0, host: "127.0.0.1" });
    const hangUp = send(gateway, URL, JSON.stringify(body()));
    await looked(1);
    expect(await create()).toMatchObject({
      status: 409,
      body: { error: { code: "idempotency_in_progress" } },
    });
    expect((await create(URL, { name: "x" })).status).toBe(422);
    hangUp();
    const reads = calls("getSandbox").length;
    const again = repeated(create);
    await looked(reads + 1);
    expect(gateway.services.idempotency.kept).toEqual([]);
    become(SandboxStatus.RUNNING);
    const answer = await again;
    expect(answer).toMatchObject({ status: 200, body: { status: "running" } });
    expect(replayed(answer)).toBe("true");
    become(SandboxStatus.STOPPED);
    expect((await create()).body).toEqual(answer.body);
    expect(gateway.services.sandboxes.size).toBe(1);
  });

  test("before it began holds neither its key nor its place", async () => {
    await gateway.app.listen({ port: 0, host: "127.0.0.1" });
    const known = Promise.withResolvers<object>();
    gateway.services.organization.authenticateKey = () => known.promise;
    const url = `/v1/sandboxes/${gateway.services.add().id}/start?wait_for=running`;
    const connected = once(gateway.app.server, "connection") as Promise<[Socket]>;
    const hangUp = send(gateway, url);
    const [socket] = await connected;
    await expect.poll(() => gateway.services.keysAsked).toHaveLength(1);
    const gone = once(socket, "close");
    hangUp();
    await gone;
    known.resolve({ orgId: ORG_ID, apiKeyId: "key-1", apiKeyName: "a key" });
    await expect.poll(() => calls("startSandbox")).toHaveLength(1);
    const again = repeated(() => start(url));
    await expect.poll(() => calls("startSandbox")).toHaveLength(2);
    await looked(1);
    become(SandboxStatus.RUNNING);
    expect(await again).toMatchObject({ status: 200, body: { status: "running" } });
  });

  test("because the sandbox was destroyed is 404, now and later", async () => {
    const answer = create();
    await looked(1);
    for (const { id } of gateway.services.sandboxes.values()) gateway.services.destroy(id);
    const first = await answer;
    expect([first.status, replayed(first)]).toEqual([404, undefined]);
    const repeat = await create();
    expect([repeat.status, repeat.body, replayed(repeat)]).toEqual([404, first.body, "true"]);
    expect(gateway.services.idempotency.kept).toEqual([]);
  });

  test("because the service is away leaves the answer open", async () => {
    await gateway.close();
    gateway = await openGateway({ rpcTimeoutMs: 50 });
    gateway.services.sandbox.getSandbox = () => new Promise(() => undefined);
    const url = "/v1/sandboxes?start=true&wait_for=running&wait_timeout=0";
    const late = await create(url);
    expect([late.status, replayed(late)]).toEqual([504, undefined]);
    delete gateway.services.sandbox.getSandbox;
    become(SandboxStatus.RUNNING);
    const repeat = await create(url);
    expect([repeat.body.status, replayed(repeat)]).toEqual(["running", "true"]);
  });
});

test("places are given back after replays", async () => {
  const url = "/v1/sandboxes?start=true&wait_for=running&wait_timeout=0";
  for (const _ of [1, 2, 3, 4]) expect((await create(url)).status).toBe(200);
});

/** Asks until the key is free. */
async function repeated(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 409) return answer;
    await setImmediate();
  }
}

/** Sends a request with the key over a socket; returns how to hang up. */
function send({ app }: Gateway, path: string, sent?: string): () => void {
  const { port } = app.server.address() as AddressInfo;
  const headers = {
    authorization: `Bearer ${KEY}`,
    "idempotency-key": "k-1",
    ...(sent === undefined ? {} : { "content-type": "application/json" }),
  };
  const request = httpRequest({ port, host: "127.0.0.1", method: "POST", path, headers });
  request.on("error", () => undefined);
  request.end(sent);
  return () => request.destroy();
}
