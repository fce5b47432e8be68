import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  LogSource,
  type ReadLogsRequest,
} from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { KEY } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
const PATH = `/v1/sandboxes/${ID}/logs`;

let gateway: Gateway;
let port: number;
beforeEach(async () => {
  gateway = await openGateway({ rpcTimeoutMs: 5_000 });
  await gateway.app.listen({ host: "127.0.0.1", port: 0 });
  port = (gateway.app.server.address() as AddressInfo).port;
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

type Events = { event: { case: "opened" | "ended"; value: object } | ReturnType<typeof entry> }[];

const OPENED = { event: { case: "opened" as const, value: {} } };
const ENDED = { event: { case: "ended" as const, value: {} } };

function entry(text: string, source: LogSource = LogSource.STDOUT, cursor = cursorOf(1n, 2n)) {
  const time = { ...timestampFromDate(new Date("2026-11-21T08:15:31Z")), nanos: 4_117_368 };
  return { case: "entry" as const, value: { cursor, source, time, text } };
}

function cursorOf(generation: bigint, offset: bigint): Uint8Array {
  const bytes = Buffer.alloc(49);
  bytes.writeUInt8(3);
  for (let i = 0; i < 3; i += 1) {
    bytes.writeBigUInt64LE(generation, 1 + i * 16);
    bytes.writeBigUInt64LE(offset, 9 + i * 16);
  }
  return bytes;
}

const idOf = (cursor: Uint8Array) => Buffer.from(cursor).toString("base64");

/** What the service answers with, and what it was asked. */
function serve(events: (context: HandlerContext) => AsyncIterable<object>): ReadLogsRequest[] {
  const asked: ReadLogsRequest[] = [];
  gateway.services.orchestrator.readLogs = async function* (request, context) {
    asked.push(request);
    yield* events(context) as AsyncIterable<Events[number]>;
  };
  return asked;
}

/** Until the call is over. */
const over = ({ signal }: HandlerContext) =>
  signal.aborted ? Promise.resolve() : once(signal, "abort").then(() => undefined);

interface Answer {
  request: ClientRequest;
  response: IncomingMessage;
  /** What has arrived. */
  body: () => string;
  ended: Promise<unknown>;
}

async function get(path = PATH, headers: Record<string, string> = {}): Promise<Answer> {
  const request = httpRequest({
    port,
    path,
    headers: { authorization: `Bearer ${KEY}`, ...headers },
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let body = "";
  response.setEncoding("utf8").on("data", (chunk: string) => {
    body += chunk;
  });
  const ended = new Promise((resolve) => response.once("close", resolve));
  return { request, response, body: () => body, ended };
}

describe("the stream", () => {
  test("is of server-sent events, with headers that let nobody keep them back", async () => {
    serve(async function* () {
      yield OPENED;
      yield { event: entry("hello\n") };
      yield { event: entry("two\r\nlines\u2028", LogSource.SYSTEM) };
      yield ENDED;
    });
    const { response, body, ended } = await get(PATH, { "x-request-id": "mine" });
    await ended;
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "x-request-id": "mine",
    });
    const id = idOf(cursorOf(1n, 2n));
    const ts = "2026-11-21T08:15:31.004117368Z";
    expect(body()).toBe(
      `id: ${id}\nevent: log\ndata: {"source":"stdout","ts":"${ts}","text":"hello\\n"}\n\n` +
        `id: ${id}\nevent: log\ndata: {"source":"system","ts":"${ts}","text":"two\\r\\nlines\u2028"}\n\n` +
        "event: end\ndata: {}\n\n",
    );
  });

  test("begins before anything is written", async () => {
    serve(async function* (context) {
      yield OPENED;
      await over(context);
    });
    const { response, request } = await get();
    expect(response.statusCode).toBe(200);
    request.destroy();
  });

  test("answers HEAD with its headers", async () => {
    serve(async function* (context) {
      yield OPENED;
      await over(context);
    });
    const answer = await gateway.app.inject({
      method: "HEAD",
      url: PATH,
      headers: { authorization: `Bearer ${KEY}` },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["content-type"]).toMatch(/^text\/event-stream/);
  });

  test("passes sources and Last-Event-ID on", async () => {
    const asked = serve(async function* () {
      yield OPENED;
      yield ENDED;
    });
    const cursor = cursorOf(7n, 2n ** 63n - 1n);
    for (const [query, id] of [
      ["", undefined],
      ["?sources=stdout,stderr", idOf(cursor)],
      ["?sources=all", "AA=="],
      ["?sources=system,system", ""],
    ] as const)
      await (await get(PATH + query, id === undefined ? {} : { "last-event-id": id })).ended;
    const { STDOUT, STDERR, OUTPUT, SYSTEM } = LogSource;
    expect(asked.map(({ sources }) => sources)).toEqual([
      [],
      [STDOUT, STDERR],
      [STDOUT, STDERR, OUTPUT, SYSTEM],
      [SYSTEM],
    ]);
    expect(asked.map(({ sandboxId }) => sandboxId)).toEqual([ID, ID, ID, ID]);
    expect(asked.map(({ after }) => Buffer.from(after).toString("hex"))).toEqual([
      "",
      Buffer.from(cursor).toString("hex"),
      "00",
      "",
    ]);
  });
});

describe("a refusal", () => {
  test("names what is wrong with the request", async () => {
    for (const sources of ["stdin", "stdout,", "", "all,none"])
      expect(faultPaths(await gateway.call("GET", `${PATH}?sources=${sources}`))).toEqual([
        "sources",
      ]);
    const short = idOf(cursorOf(1n, 1n).slice(0, 40));
    for (const id of ["no base64", "AwA", "AAA=", idOf(cursorOf(1n, 1n)).slice(0, -1), short])
      expect(
        faultPaths(
          await gateway.call("GET", PATH, undefined, { headers: { "last-event-id": id } }),
        ),
      ).toEqual(["headers.last-event-id"]);
    expect(faultPaths(await gateway.call("GET", "/v1/sandboxes/none/logs"))).toEqual([
      "sandbox_id",
    ]);
  });

  test("is a normal answer, whatever it is, as long as nothing was sent", async () => {
    const refusals = [
      [new ServiceError("SANDBOX_NOT_FOUND", "resource not found"), 404, "sandbox_not_found"],
      [new ServiceError("SERVICE_UNAVAILABLE", "service unavailable"), 503, "service_unavailable"],
      [
        new ServiceError("INVALID_REQUEST", "invalid request", {
          faults: [{ field: "after", message: "is not a cursor" }],
        }),
        400,
        "invalid_request",
      ],
      [new Error("a bug"), 500, "internal"],
    ] as const;
    for (const [error, status, code] of refusals) {
      // biome-ignore lint/correctness/useYield: it fails before it yields
      serve(async function* () {
        throw error;
      });
      const answer = await gateway.call("GET", PATH);
      expect(answer).toMatchObject({ status, body: { error: { code } } });
    }
    const none = await gateway.call("GET", PATH, undefined, {
      headers: { authorization: undefined },
    });
    expect(none.status).toBe(401);
  });

  test("comes in time where nothing opens", async () => {
    const hasty = await openGateway({ rpcTimeoutMs: 20 });
    const { promise: hungUp, resolve } = Promise.withResolvers<void>();
    hasty.services.orchestrator.readLogs = async function* (_request, context) {
      await over(context);
      resolve();
      yield OPENED;
    };
    expect(await hasty.call("GET", PATH)).toMatchObject({ status: 504 });
    await hungUp;
    await hasty.close();
  });
});

describe("an end", () => {
  test("without `end` is all that a late failure is", async () => {
    serve(async function* () {
      yield OPENED;
      yield { event: entry("one\n") };
      throw new ConnectError("gone", Code.Unavailable);
    });
    const { body, ended } = await get();
    await ended;
    expect(body()).toContain("one");
    expect(body()).not.toContain("event: end");
  });

  test("by a client that hangs up ends the call at once", async () => {
    const { promise: hungUp, resolve } = Promise.withResolvers<void>();
    serve(async function* (context) {
      yield OPENED;
      await over(context);
      resolve();
    });
    const { request } = await get();
    request.destroy();
    await hungUp;
    expect(gateway.logged).toEqual([]);
  });

  test("by a gateway that drains comes without `end`, and closes the connection", async () => {
    serve(async function* (context) {
      yield OPENED;
      yield { event: entry("one\n") };
      await over(context);
    });
    const answers = await Promise.all(Array.from({ length: 5 }, () => get()));
    for (const { body } of answers) await expect.poll(body).toContain("one");
    await gateway.close();
    for (const { body, ended } of answers) {
      await ended;
      expect(body()).not.toContain("event: end");
    }
  });
});

test("idle streams hear a comment every 15 s, by no timer of their own", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  serve(async function* (context) {
    yield OPENED;
    await over(context);
  });
  const before = vi.getTimerCount();
  const answers = await Promise.all(Array.from({ length: 20 }, () => get()));
  // One that comments, one that looks whether keys are still good.
  expect(vi.getTimerCount()).toBe(before + 2);
  for (const times of [1, 2]) {
    vi.advanceTimersByTime(15_000);
    for (const { body } of answers) await expect.poll(body).toBe(":\n\n".repeat(times));
  }
  for (const { request } of answers) request.destroy();
  await expect.poll(() => vi.getTimerCount()).toBe(before);
});

test("a client that does not read stops the source", async () => {
  let sent = 0;
  const text = "0".repeat(16 * 1024);
  serve(async function* () {
    yield OPENED;
    for (; sent < 6_400; sent += 1) yield { event: entry(text) };
    yield ENDED;
  });
  const request = httpRequest({ port, path: PATH, headers: { authorization: `Bearer ${KEY}` } });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.pause();
  let last = -1;
  const settled = () => {
    const same = sent === last;
    last = sent;
    return same;
  };
  await expect.poll(settled, { interval: 200 }).toBe(true);
  // Of a hundred megabytes, what the sockets of both sides hold.
  expect(sent).toBeLessThan(1_000);
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
  });
  response.resume();
  await once(response, "end");
  expect(sent).toBe(6_400);
  expect(bytes).toBeGreaterThan(6_400 * text.length);
});
