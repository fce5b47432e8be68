import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer as createHttp2Server, type Http2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { freePort } from "../support/ports.ts";
import { asCaller, startServer, TOKEN } from "./support.ts";

// What a client makes of a process that is killed, frozen, or not there yet.

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function clientOf(port: number, pingMs?: number) {
  const baseUrl = `http://127.0.0.1:${port}`;
  const transport = createRemoteTransport({ baseUrl, token: TOKEN, ...(pingMs && { pingMs }) });
  cleanups.push(() => transport.close());
  return createClient(SandboxService, transport);
}

interface SilentProcess {
  child: ChildProcess;
  /** Resolves when it has been called so many times. */
  called(times: number): Promise<void>;
}

/** A process that takes calls and never answers them. */
async function startSilentProcess(port: number): Promise<SilentProcess> {
  const script = `
    const server = require("node:http2").createServer();
    server.on("stream", () => console.log("called"));
    server.listen(${port}, "127.0.0.1", () => console.log("listening"));`;
  const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  cleanups.push(() => child.kill("SIGKILL"));
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const count = (word: string) => said.split(word).length - 1;
  await expect.poll(() => count("listening"), PATIENT).toBe(1);
  const called = (times: number) => expect.poll(() => count("called"), PATIENT).toBe(times);
  return { child, called };
}

const PATIENT = { timeout: 15_000 };

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => Promise.reject(new Error("the call did not fail")),
    (error) => ConnectError.from(error),
  );
}

const named = (value: string) => ({ key: { key: { case: "name", value } } }) as const;

test("a process that is killed breaks its calls off as Unavailable, and names no host", async () => {
  const port = await freePort();
  const { child, called } = await startSilentProcess(port);
  const calls = [
    clientOf(port).startSandbox(named("box"), { timeoutMs: 20_000 }),
    clientOf(port).watchSandboxes({}, { timeoutMs: 20_000 })[Symbol.asyncIterator]().next(),
  ].map(failure);
  await called(2);
  child.kill("SIGKILL");
  for (const { code, rawMessage } of await Promise.all(calls))
    expect({ code, rawMessage }).toEqual({
      code: Code.Unavailable,
      rawMessage: "service unavailable",
    });
}, 30_000);

test("a process that is frozen does not hold a call without a deadline", async () => {
  const port = await freePort();
  const { child, called } = await startSilentProcess(port);
  const client = clientOf(port, 200);
  const stream = failure(client.watchSandboxes({})[Symbol.asyncIterator]().next());
  await called(1);
  child.kill("SIGSTOP");
  expect((await stream).code).toBe(Code.Unavailable);
  // A new connection is taken by the kernel alone, so the deadline is what is left.
  const call = failure(client.startSandbox(named("box"), { timeoutMs: 300 }));
  expect((await call).code).toBe(Code.DeadlineExceeded);
});

test("a call that is free of side effects waits out a short absence, and its server's return", async () => {
  const port = await freePort();
  const client = clientOf(port);
  const call = client.getSandbox(named("box"), { ...asCaller(), timeoutMs: 10_000 });
  const first = await startServer({ port });
  expect((await call).sandbox?.name).toBe("box");
  await first.close();
  const again = client.getSandbox(named("box"), { ...asCaller(), timeoutMs: 10_000 });
  const second = await startServer({ port });
  cleanups.push(second.close);
  expect((await again).sandbox?.name).toBe("box");
  expect(second.fake.calls).toHaveLength(1);
});

test("a call that changes something is made once; the next one finds the server again", async () => {
  const sockets: Socket[] = [];
  const broken = createServer((socket) => {
    sockets.push(socket.on("error", () => undefined));
    socket.once("data", () => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(broken, "listening");
  const address = broken.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const client = clientOf(address.port);
  await expect.poll(() => sockets.length).toBe(1);
  const made = { name: "box", spec: { image: "alpine" } };
  expect((await failure(client.createSandbox(made, asCaller()))).code).toBe(Code.Unavailable);
  // One to warm up, and one for the call.
  expect(sockets.length).toBeLessThanOrEqual(2);
  await new Promise((closed) => broken.close(closed));
  const server = await startServer({ port: address.port });
  cleanups.push(server.close);
  expect((await client.createSandbox(made, asCaller())).sandbox?.name).toBe("box");
});

test("the tries of a call end with its deadline", async () => {
  const client = clientOf(await freePort());
  const began = performance.now();
  const error = await failure(client.getSandbox(named("box"), { ...asCaller(), timeoutMs: 400 }));
  expect([Code.Unavailable, Code.DeadlineExceeded]).toContain(error.code);
  expect(performance.now() - began).toBeLessThan(3_000);
});

test("a server that refuses is asked again, and its last word is what counts", async () => {
  const server = await startServer();
  cleanups.push(server.close);
  const error = await failure(clientOf(server.port).getSandbox(named("missing"), asCaller()));
  expect(error.code).toBe(Code.NotFound);
  expect(server.fake.calls).toHaveLength(1);
});

test("a connection carries more than HTTP/2's 64 KiB at once, each way", async () => {
  const mayBeSent = (session: Http2Session | undefined) =>
    expect.poll(() => session?.state.remoteWindowSize ?? 0, PATIENT);
  // What a client of ours may be sent.
  const server = createHttp2Server();
  let session: Http2Session | undefined;
  server.on("session", (opened) => {
    session = opened;
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanups.push(
    () => server.close(),
    () => session?.destroy(),
  );
  const call = new AbortController();
  const { port } = server.address() as AddressInfo;
  const called = once(server, "stream");
  const answer = clientOf(port)
    .getSandbox({}, { signal: call.signal })
    .catch(() => undefined);
  await called;
  await mayBeSent(session).toBeGreaterThan(1024 * 1024);
  call.abort();
  await answer;
  // What may be sent to a server of ours.
  const ours = await startServer();
  cleanups.push(() => ours.close());
  const client = connect(`http://127.0.0.1:${ours.port}`);
  cleanups.push(() => client.destroy());
  await mayBeSent(client).toBeGreaterThan(1024 * 1024);
});
