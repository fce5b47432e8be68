import { once } from "node:events";
import { connect } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, describe, expect, test } from "vitest";
import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { StartupError } from "../../runtime/errors.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { asCaller, startServer, TOKEN } from "./support.ts";

const LONG = 60_000;

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(options: Parameters<typeof startServer>[0] = {}) {
  const server = await startServer(options);
  const transport = createRemoteTransport({ baseUrl: server.url, token: TOKEN });
  cleanups.push(server.close, transport.close);
  return { ...server, sandboxes: createClient(SandboxService, transport) };
}

describe("the RPC port", () => {
  test("carries messages of several megabytes", async () => {
    const { sandboxes } = await start();
    const content = "x".repeat(2 * 1024 * 1024);
    const spec = { image: "alpine", runtime: { scripts: { big: content } } };
    const { sandbox } = await sandboxes.createSandbox({ name: "big", spec }, asCaller());
    expect(sandbox?.spec?.runtime?.scripts.big).toHaveLength(content.length);
  });

  test("refuses a message above its limit, and lives on", async () => {
    const { sandboxes } = await start();
    const content = new Uint8Array(37 * 1024 * 1024);
    const file = { case: "file", value: { path: "/big", content } } as const;
    const spec = { image: "alpine", patches: [{ kind: file }] };
    const error = await failure(sandboxes.createSandbox({ spec }, asCaller()));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(
      (await sandboxes.createSandbox({ spec: { image: "alpine" } }, asCaller())).sandbox?.id,
    ).toBeDefined();
  });

  test("waits for a preface that comes in pieces", async () => {
    const { port } = await start();
    const socket = connect(port, "127.0.0.1").setNoDelay();
    cleanups.push(() => socket.destroy());
    socket.write("P");
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.write("OST /grpc.health.v1.Health/Check HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n");
    socket.write("content-type: application/json\r\n\r\n{}");
    const [answer] = await once(socket, "data");
    expect(String(answer)).toContain('{"status":"SERVING"}');
  });

  test("says in one sentence that it is taken", async () => {
    const { port } = await start();
    const taken = startServer({ port });
    await expect(taken).rejects.toThrow(StartupError);
    await expect(taken).rejects.toThrow(`Cannot listen for RPC on 127.0.0.1:${port}`);
  });
});

describe("grpc.health.v1", () => {
  async function health(options: Parameters<typeof startServer>[0] = {}) {
    const { url, close } = await start(options);
    const trusted = createRemoteTransport({ baseUrl: url, token: TOKEN });
    cleanups.push(trusted.close);
    // As a probe does it: gRPC, and no token.
    const probe = createClient(Health, createGrpcTransport({ baseUrl: url }));
    return { close, client: createClient(Health, trusted), probe };
  }

  test("tells a probe without a token whether the process can serve, and nothing else", async () => {
    let ready = true;
    const { probe } = await health({ ready: () => ready });
    expect((await probe.check({})).status).toBe(ServingStatus.SERVING);
    ready = false;
    expect((await probe.check({})).status).toBe(ServingStatus.NOT_SERVING);
    for (const service of [SandboxService.typeName, "a.B"])
      expect((await failure(probe.check({ service }))).code).toBe(Code.Unauthenticated);
    expect((await failure(probe.list({}))).code).toBe(Code.Unauthenticated);
    const watch = probe.watch({})[Symbol.asyncIterator]();
    expect((await failure(watch.next())).code).toBe(Code.Unauthenticated);
  });

  test("tells whether the process can serve", async () => {
    let ready = false;
    const { client } = await health({ ready: () => ready });
    expect((await client.check({})).status).toBe(ServingStatus.NOT_SERVING);
    ready = true;
    for (const service of ["", SandboxService.typeName])
      expect((await client.check({ service })).status).toBe(ServingStatus.SERVING);
    const { statuses } = await client.list({});
    expect(Object.keys(statuses)).toEqual([
      "",
      SandboxService.typeName,
      OrganizationService.typeName,
    ]);
  });

  test("of a process that is about to end is no for who looks for one, and yes for who is connected", async () => {
    let leaving = false;
    const { url } = await start({ leaving: () => leaving });
    const transport = createRemoteTransport({ baseUrl: url, token: TOKEN });
    cleanups.push(transport.close);
    const client = createClient(Health, transport);
    const statuses = async () => {
      const { status } = await client.check({});
      return [status, (await client.check({ service: SandboxService.typeName })).status];
    };
    expect(await statuses()).toEqual([ServingStatus.SERVING, ServingStatus.SERVING]);
    leaving = true;
    expect(await statuses()).toEqual([ServingStatus.NOT_SERVING, ServingStatus.SERVING]);
  });

  test("takes a failing check for no", async () => {
    const { client } = await health({ ready: () => Promise.reject(new Error("no database")) });
    expect((await client.check({})).status).toBe(ServingStatus.NOT_SERVING);
  });

  test("does not know other services", async () => {
    const { client } = await health();
    expect((await failure(client.check({ service: "a.B" }))).code).toBe(Code.NotFound);
    const first = await client.watch({ service: "a.B" })[Symbol.asyncIterator]().next();
    expect(first.value?.status).toBe(ServingStatus.SERVICE_UNKNOWN);
  });

  test("tells watchers of every change, and of the end", async () => {
    let ready = true;
    const { client, close } = await health({ ready: () => ready });
    const watch = client.watch({})[Symbol.asyncIterator]();
    expect((await watch.next()).value?.status).toBe(ServingStatus.SERVING);
    ready = false;
    expect((await watch.next()).value?.status).toBe(ServingStatus.NOT_SERVING);
    const rest = failure(watch.next());
    await close();
    expect((await rest).code).toBe(Code.Unavailable);
  });
});

describe("a closing server", () => {
  test("ends streams at once, and says why", async () => {
    const { sandboxes, close } = await start();
    const stream = sandboxes.watchSandboxes({ cursor: "1" })[Symbol.asyncIterator]();
    await stream.next();
    const rest = failure(stream.next());
    await close(LONG);
    expect(await rest).toMatchObject({
      code: Code.Unavailable,
      rawMessage: "the server is shutting down",
    });
  });

  test("lets a call finish within the grace", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const { sandboxes, close } = await start({
      routes: (router) =>
        router.service(SandboxService, {
          async startSandbox() {
            begin();
            await gate;
            return { sandbox: { name: "started" } };
          },
        }),
    });
    const call = sandboxes.startSandbox({ key: { key: { case: "name", value: "box" } } });
    await begun;
    const closed = close(LONG);
    open();
    expect((await call).sandbox?.name).toBe("started");
    await closed;
  });

  test("breaks off what outlasts the grace", async () => {
    const { sandboxes, fake, close } = await start();
    const call = failure(
      sandboxes.getSandbox({ key: { key: { case: "name", value: "slow" } } }, asCaller()),
    );
    await expect.poll(() => fake.calls.length).toBe(1);
    await close(50);
    expect((await call).code).toBe(Code.Unavailable);
    expect(fake.calls[0]?.signal.aborted).toBe(true);
  });

  test("does not wait for idle connections", async () => {
    const { url, sandboxes, port, close } = await start();
    await sandboxes.createSandbox({ spec: { image: "alpine" } }, asCaller());
    await fetch(`${url}/grpc.health.v1.Health/Check`, { method: "POST" });
    const silent = connect(port, "127.0.0.1");
    cleanups.push(() => silent.destroy());
    await once(silent, "connect");
    await close(LONG);
    await close(LONG);
  });
});

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => Promise.reject(new Error("the call did not fail")),
    (error) => ConnectError.from(error),
  );
}
