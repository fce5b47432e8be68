import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import pino from "pino";
import { afterEach, expect, test, vi } from "vitest";
import { buildApp } from "../../gateway/app.ts";
import { FakeServices, KEY } from "./support/fake-services.ts";
import { type Gateway, openGateway, UNLIMITED } from "./support/gateway.ts";

const opened: Pick<Gateway, "close">[] = [];
afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway.close();
});

const ORIGIN = "https://console.example.org";
const preflight = { origin: ORIGIN, "access-control-request-method": "POST" };

async function withOrigins(corsOrigins: string[]): Promise<Gateway> {
  const gateway = await openGateway({ corsOrigins });
  opened.push(gateway);
  return gateway;
}

test("what is not ready is named", async () => {
  const app = buildApp({
    clients: new FakeServices().clients(),
    config: { ...UNLIMITED, corsOrigins: [], waitsMax: 1 },
    log: pino({ level: "silent" }),
    readiness: async () => ({ ready: false, checks: { database: false, sandbox: true } }),
  });
  opened.push(app);
  const answer = await app.inject("/readyz");
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["retry-after"]).toMatch(/^\d+$/);
  expect(answer.json()).toEqual({
    error: {
      code: "service_unavailable",
      message: "not ready: database",
      details: { checks: { database: false, sandbox: true } },
    },
  });
  expect((await app.inject("/healthz")).statusCode).toBe(200);
});

test("CORS is off unless origins are configured", async () => {
  const { app } = await withOrigins([]);
  const answer = await app.inject({ method: "OPTIONS", url: "/v1/sandboxes", headers: preflight });
  expect(answer.statusCode).toBe(405);
  expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
});

test("CORS lets configured origins ask, and read what went wrong", async () => {
  const { app } = await withOrigins([ORIGIN]);
  const allowed = { "access-control-allow-origin": ORIGIN };
  const asked = await app.inject({ method: "OPTIONS", url: "/v1/sandboxes", headers: preflight });
  expect(asked).toMatchObject({ statusCode: 204, headers: allowed });
  expect(asked.headers["x-request-id"]).toBeDefined();
  expect(asked.headers["access-control-allow-headers"]).toContain("idempotency-key");
  for (const url of ["/v1/sandboxes", "/nope"]) {
    const answer = await app.inject({ url, headers: { origin: ORIGIN } });
    expect([401, 404]).toContain(answer.statusCode);
    expect(answer.headers).toMatchObject(allowed);
    for (const name of [
      "x-request-id",
      "idempotent-replayed",
      "retry-after",
      "ratelimit-remaining",
    ])
      expect(answer.headers["access-control-expose-headers"]).toContain(name);
  }
});

test("CORS lets no other origin ask", async () => {
  const { app } = await withOrigins([ORIGIN]);
  const answer = await app.inject({ url: "/healthz", headers: { origin: "https://evil.example" } });
  expect(answer.headers["access-control-allow-origin"]).not.toBe("https://evil.example");
});

test("what comes on an open connection while the gateway drains is served, as its last", async () => {
  const { app, services, close } = await withOrigins([]);
  const finish = Promise.withResolvers<void>();
  services.sandbox.listSandboxes = async () => {
    await finish.promise;
    return {};
  };
  await app.listen({ port: 0, host: "127.0.0.1" });
  const socket = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
  const answers = readAll(socket);
  const ask = (path: string) =>
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`);
  ask("/v1/sandboxes");
  await vi.waitFor(() => expect(services.calls).toHaveLength(1));
  const closed = close();
  const arrived = once(app.server, "request");
  ask("/v1/me/org");
  await arrived;
  finish.resolve();
  const [first, second] = (await answers).split(/(?=HTTP\/1\.1)/);
  expect(first).toMatch(/^HTTP\/1\.1 200 /);
  expect(first).not.toMatch(/connection: close/i);
  expect(second).toMatch(/^HTTP\/1\.1 200 /);
  expect(second).toMatch(/connection: close/i);
  await closed;
});

test("a watch that breaks off is told to the log, and taken up again", async () => {
  const gateway = await withOrigins([]);
  await expect.poll(() => gateway.services.watch.opened).toHaveLength(1);
  gateway.services.watch.breakOff();
  await expect.poll(() => gateway.services.watch.opened).toHaveLength(2);
  expect(gateway.logged).toEqual([
    expect.objectContaining({ msg: "the watch on sandboxes broke off" }),
  ]);
});

function readAll(socket: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.on("close", () => resolve(text));
  return promise;
}
