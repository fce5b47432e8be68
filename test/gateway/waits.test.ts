import { request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type Sandbox, SandboxStatus } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { body } from "./support/bodies.ts";
import { KEY } from "./support/fake-services.ts";
import { type Answer, faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const PLACES = 1200;

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway({ waitsMax: PLACES });
});
afterEach(() => gateway.close());

const start = (sandbox: Sandbox, query = "wait_for=running&wait_timeout=300") =>
  gateway.call("POST", `/v1/sandboxes/${sandbox.id}/start?${query}`, "{}");

/** Returns once the service was asked `n` times for the sandbox: so often a wait has looked. */
async function looked(n: number): Promise<void> {
  await vi.waitFor(() => expect(reads()).toBeGreaterThanOrEqual(n), {
    timeout: 20_000,
    interval: 2,
  });
}

function reads(): number {
  return gateway.services.calls.filter(({ method }) => method === "getSandbox").length;
}

describe("a wait ends", () => {
  const outcomes = [
    ["running", SandboxStatus.RUNNING],
    ["failed", SandboxStatus.FAILED],
    ["stopped", SandboxStatus.STOPPED],
  ] as const;

  test.each(outcomes)("when the sandbox is %s", async (word, status) => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    gateway.services.change(sandbox.id, { status });
    expect(await answer).toMatchObject({ status: 200, body: { id: sandbox.id, status: word } });
  });

  test.each(outcomes)("at once where it is %s already", async (word, status) => {
    const sandbox = gateway.services.add();
    gateway.services.sandbox.startSandbox = async () => {
      gateway.services.change(sandbox.id, { status }, true);
      return { sandbox };
    };
    expect(await start(sandbox)).toMatchObject({ status: 200, body: { status: word } });
    expect(reads()).toBe(1);
  });

  test("only when a stop is done, not when it begins", async () => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    gateway.services.change(sandbox.id, { status: SandboxStatus.STOPPING });
    gateway.services.watch.changed(sandbox.id, SandboxStatus.STOPPED);
    await looked(2);
    gateway.services.change(sandbox.id, { status: SandboxStatus.STOPPED });
    expect(await answer).toMatchObject({ status: 200, body: { status: "stopped" } });
  });

  test("with 404 when the sandbox is destroyed", async () => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    gateway.services.destroy(sandbox.id);
    expect(await answer).toMatchObject({
      status: 404,
      body: { error: { code: "sandbox_not_found" } },
    });
  });

  test("with the sandbox as it is when the budget is spent", async () => {
    const sandbox = gateway.services.add();
    const answer = await start(sandbox, "wait_for=running&wait_timeout=1");
    expect(answer).toMatchObject({ status: 200, body: { status: "starting" } });
    expect(reads()).toBe(2);
  });

  test("at once where there is no budget", async () => {
    const answer = await start(gateway.services.add(), "wait_for=running&wait_timeout=0");
    expect(answer).toMatchObject({ status: 200, body: { status: "starting" } });
  });

  test("with the sandbox as it is when the gateway drains", async () => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    await gateway.close();
    expect(await answer).toMatchObject({ status: 200, body: { status: "starting" } });
  });
});

describe("a wait outlives a service that is away", () => {
  const away = () => {
    gateway.services.sandbox.getSandbox = async () => {
      throw new ServiceError("SERVICE_UNAVAILABLE", "the database does not answer");
    };
  };

  test("and is answered when it is back, though nobody wakes it", async () => {
    const sandbox = gateway.services.add();
    away();
    const answer = start(sandbox);
    await looked(2);
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING }, true);
    delete gateway.services.sandbox.getSandbox;
    expect(await answer).toMatchObject({ status: 200, body: { status: "running" } });
  });

  test("until its budget is spent", async () => {
    const sandbox = gateway.services.add();
    away();
    const answer = await start(sandbox, "wait_for=running&wait_timeout=1");
    expect(answer).toMatchObject({ status: 503, body: { error: { code: "service_unavailable" } } });
  });
});

describe("a wait is woken", () => {
  test("by a change that comes while it looks", async () => {
    const sandbox = gateway.services.add();
    const looking = Promise.withResolvers<void>();
    gateway.services.sandbox.getSandbox = async () => {
      // What was read is older than the change that is told meanwhile.
      const before = gateway.services.sandboxes.get(sandbox.id);
      delete gateway.services.sandbox.getSandbox;
      gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
      await looking.promise;
      return before ? { sandbox: before } : {};
    };
    const answer = start(sandbox);
    await vi.waitFor(() => expect(gateway.services.sandbox.getSandbox).toBeUndefined());
    // The watch is read to its end before the look returns.
    await gateway.call("GET", "/v1/me/org");
    looking.resolve();
    expect(await answer).toMatchObject({ body: { status: "running" } });
  });

  test("by the late word of an earlier run, but not misled", async () => {
    const sandbox = gateway.services.add({ status: SandboxStatus.STOPPED, generation: 1 });
    const answer = start(sandbox);
    await looked(1);
    gateway.services.watch.changed(sandbox.id, SandboxStatus.STOPPED);
    await looked(2);
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
    expect(await answer).toMatchObject({ body: { status: "running" } });
  });

  test("by no change of another sandbox", async () => {
    const [sandbox, other] = [gateway.services.add(), gateway.services.add()];
    const answer = start(sandbox);
    await looked(1);
    gateway.services.change(other.id, { status: SandboxStatus.RUNNING });
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
    await answer;
    expect(reads()).toBe(2);
  });

  test("by changes that a broken stream missed, once it is resumed", async () => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    const { watch } = gateway.services;
    const streams = watch.opened.length;
    watch.breakOff();
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
    expect(await answer).toMatchObject({ body: { status: "running" } });
    expect(watch.opened.slice(streams)).toEqual([expect.stringMatching(/^\d+\.\d+$/)]);
  });

  test("by a stream that cannot be resumed, for anything may have changed", async () => {
    const sandbox = gateway.services.add();
    const answer = start(sandbox);
    await looked(1);
    gateway.services.watch.resumable = false;
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING }, true);
    gateway.services.watch.breakOff();
    expect(await answer).toMatchObject({ body: { status: "running" } });
  });

  test("through one stream, however many wait: 1,000 at once", async () => {
    const sandboxes = Array.from({ length: 1000 }, () => gateway.services.add());
    const answers = sandboxes.map((sandbox) => start(sandbox));
    await looked(1000);
    for (const { id } of sandboxes) gateway.services.change(id, { status: SandboxStatus.RUNNING });
    const statuses = (await Promise.all(answers)).map(({ body }: Answer) => body.status);
    expect(new Set(statuses)).toEqual(new Set(["running"]));
    // Each looked once before and once after: none polled.
    expect(reads()).toBe(2000);
    expect(gateway.services.watch.opened).toHaveLength(1);
  });
});

describe("a create with a wait", () => {
  test("answers what became of it", async () => {
    const answer = gateway.call("POST", "/v1/sandboxes?start=true&wait_for=running", body());
    await looked(1);
    const [sandbox] = gateway.services.sandboxes.values();
    gateway.services.change(sandbox?.id ?? "", { status: SandboxStatus.RUNNING });
    expect(await answer).toMatchObject({ status: 200, body: { status: "running" } });
  });

  test("works by name as well", async () => {
    const sandbox = gateway.services.add({ name: "by-name" });
    const url = "/v1/sandboxes/by-name/by-name/start?wait_for=running";
    const answer = gateway.call("POST", url);
    await looked(1);
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
    expect(await answer).toMatchObject({ status: 200, body: { status: "running" } });
  });

  test.each([
    ["/v1/sandboxes?wait_for=running", ["wait_for"]],
    ["/v1/sandboxes?start=false&wait_for=running&wait_timeout=1", ["wait_for"]],
    ["/v1/sandboxes?start=true&wait_timeout=1", ["wait_timeout"]],
    ["/v1/sandboxes?start=true&wait_for=stopped", ["wait_for"]],
    ["/v1/sandboxes?start=true&wait_for=running&wait_timeout=-1", ["wait_timeout"]],
    ["/v1/sandboxes?start=true&wait_for=running&wait_timeout=1.5", ["wait_timeout"]],
    ["/v1/sandboxes?start=true&wait_for=running&wait_timeout=", ["wait_timeout"]],
    ["/v1/sandboxes?start=yes", ["start"]],
    ["/v1/sandboxes?start=true&start=true", ["start"]],
  ])("is refused as %s", async (url, paths) => {
    expect(faultPaths(await gateway.call("POST", url, body()))).toEqual(paths);
    expect(gateway.services.calls).toEqual([]);
  });

  test("is held for 300 seconds at most, whatever was asked", async () => {
    const timers = vi.spyOn(globalThis, "setTimeout");
    const sandbox = gateway.services.add();
    const answer = start(sandbox, "wait_for=running&wait_timeout=9007199254740991");
    await looked(1);
    expect(timers.mock.calls.map(([, ms]) => ms)).toContain(300_000);
    gateway.services.change(sandbox.id, { status: SandboxStatus.RUNNING });
    await answer;
    timers.mockRestore();
  });
});

describe("places", () => {
  test("that are all taken refuse a wait before anything is asked", async () => {
    await gateway.close();
    gateway = await openGateway({ waitsMax: 1 });
    const [first, second] = [gateway.services.add(), gateway.services.add()];
    const answer = start(first);
    await looked(1);
    const asked = gateway.services.calls.length;
    expect(await start(second)).toMatchObject({
      status: 429,
      headers: { "retry-after": expect.stringMatching(/^\d+$/) },
      body: { error: { code: "rate_limited", message: "too many requests", details: null } },
    });
    expect(gateway.services.calls).toHaveLength(asked);
    expect(await start(second, "")).toMatchObject({ status: 200 });
    gateway.services.change(first.id, { status: SandboxStatus.RUNNING });
    await answer;
    gateway.services.change(second.id, { status: SandboxStatus.RUNNING });
    expect(await start(second, "wait_for=running&wait_timeout=0")).toMatchObject({ status: 200 });
  });

  test("are given back when the start is refused", async () => {
    await gateway.close();
    gateway = await openGateway({ waitsMax: 1 });
    const sandbox = gateway.services.add();
    gateway.services.sandbox.startSandbox = async () => {
      throw new ServiceError("ORCHESTRATOR_UNREACHABLE", "none");
    };
    for (const _ of [1, 2]) expect((await start(sandbox)).status).toBe(502);
  });

  test("are given back when the client hangs up", async () => {
    await gateway.close();
    gateway = await openGateway({ waitsMax: 1 });
    await gateway.app.listen({ port: 0, host: "127.0.0.1" });
    const [first, second] = [gateway.services.add(), gateway.services.add()];
    const hangUp = sendStart(gateway, first.id);
    await looked(1);
    expect((await start(second)).status).toBe(429);
    hangUp();
    await vi.waitFor(async () =>
      expect(await start(second, "wait_for=running&wait_timeout=0")).toMatchObject({ status: 200 }),
    );
    // The start itself stays admitted, and nobody complains of a client that left.
    expect(gateway.services.sandboxes.get(first.id)?.status).toBe(SandboxStatus.STARTING);
    expect(gateway.logged).toEqual([]);
  });
});

/** Sends a start with a wait over a socket; returns how to hang up. */
function sendStart({ app }: Gateway, id: string): () => void {
  const { port } = app.server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${KEY}` };
  const path = `/v1/sandboxes/${id}/start?wait_for=running`;
  const request = httpRequest({ port, host: "127.0.0.1", method: "POST", path, headers });
  request.on("error", () => undefined);
  request.end();
  return () => request.destroy();
}
