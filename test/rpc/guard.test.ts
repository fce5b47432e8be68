import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { afterEach, expect, test, vi } from "vitest";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createRemoteTransport, type RemoteTransport } from "../../runtime/rpc/client.ts";
import type { GuardOptions } from "../../runtime/rpc/guard.ts";
import { type DelayLine, delayLine } from "../support/delay-line.ts";
import { freePort } from "../support/ports.ts";
import { asCaller, startServer, TOKEN } from "./support.ts";

// What a caller of a slow, silent or missing process keeps: its memory and its time.

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function connectTo(port: number, options: GuardOptions = {}) {
  const transport = createRemoteTransport({
    baseUrl: `http://127.0.0.1:${port}`,
    token: TOKEN,
    guard: { patienceMs: 200, ...options },
  });
  cleanups.push(() => transport.close());
  return { transport, client: createClient(SandboxService, transport as Transport) };
}

async function slowServer(): Promise<DelayLine> {
  const server = await startServer();
  cleanups.push(server.close);
  const line = await delayLine(() => server.port);
  cleanups.push(line.close);
  return line;
}

const named = (value: string) => ({ key: { key: { case: "name", value } } }) as const;
const PATIENT = { timeout: 20_000 };

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => Promise.reject(new Error("the call did not fail")),
    (error) => ConnectError.from(error),
  );
}

const isOpen = (transport: RemoteTransport) => expect.poll(() => transport.numbers().open, PATIENT);

test("a silent process is found out by one call; then none waits, until there is a sign of life", async () => {
  const line = await slowServer();
  const onChange = vi.fn();
  const { transport, client } = connectTo(line.port, { onChange });
  await client.getSandbox(named("box"), asCaller());
  line.silence();
  const first = failure(client.startSandbox(named("box"), { ...asCaller(), timeoutMs: 15_000 }));
  await isOpen(transport).toBe(true);
  // With no deadline it would wait for ever.
  for (const call of [
    client.getSandbox(named("box"), asCaller()),
    client.watchSandboxes({})[Symbol.asyncIterator]().next(),
  ])
    expect(await failure(call)).toMatchObject({
      code: Code.Unavailable,
      rawMessage: "service unavailable",
    });
  line.resume();
  await isOpen(transport).toBe(false);
  expect((await client.getSandbox(named("box"), asCaller())).sandbox?.name).toBe("box");
  expect(onChange.mock.calls).toEqual([[true], [false]]);
  await first;
}, 40_000);

test("a process that is not there is a matter of seconds once, and found again when it is", async () => {
  const port = await freePort();
  const { transport, client } = connectTo(port);
  await failure(client.startSandbox(named("box"), asCaller()));
  await isOpen(transport).toBe(true);
  expect((await failure(client.getSandbox(named("box"), asCaller()))).code).toBe(Code.Unavailable);
  const server = await startServer({ port });
  cleanups.push(server.close);
  await isOpen(transport).toBe(false);
  expect((await client.getSandbox(named("box"), asCaller())).sandbox?.name).toBe("box");
});

test("a slow call to a process that lives opens nothing", async () => {
  const onChange = vi.fn();
  const line = await slowServer();
  const { transport, client } = connectTo(line.port, { onChange });
  await client.getSandbox(named("box"), asCaller());
  // Each way, so that it takes longer than what lets doubts arise.
  line.delay(600);
  const answer = await client.getSandbox(named("box"), { ...asCaller(), timeoutMs: 20_000 });
  expect(answer.sandbox?.name).toBe("box");
  await isOpen(transport).toBe(false);
});

test("beyond its bound a call fails at once, and a stream likewise; who leaves makes room", async () => {
  const line = await slowServer();
  const { transport, client } = connectTo(line.port, { callsMax: 2 });
  await client.getSandbox(named("box"), asCaller());
  line.delay(100);
  const calls = [1, 2].map(() => client.getSandbox(named("box"), asCaller()));
  const third = await failure(client.getSandbox(named("box"), asCaller()));
  expect(third).toMatchObject({
    code: Code.Unavailable,
    rawMessage: "too many calls are under way",
  });
  expect(transport.numbers()).toMatchObject({ calls: 2, refused: 1, open: false });
  await Promise.all(calls);
  expect(transport.numbers().calls).toBe(0);

  const watch = new AbortController();
  const open = () =>
    client.watchSandboxes({ cursor: "1" }, { signal: watch.signal })[Symbol.asyncIterator]();
  await Promise.all([open().next(), open().next()]);
  expect(transport.numbers().streams).toBe(2);
  const other = client.watchSandboxes({ cursor: "1" })[Symbol.asyncIterator]();
  expect((await failure(other.next())).code).toBe(Code.Unavailable);
  await client.getSandbox(named("box"), asCaller());
  watch.abort();
  expect(transport.numbers().streams).toBe(0);
});
