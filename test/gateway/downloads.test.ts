import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ReadFileRequest } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { type Reason, ServiceError } from "../../runtime/errors.ts";
import { KEY } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";
import { FILES, fileMessage, MADE, pathHeader, VOLUME_ID } from "./support/volumes.ts";

const CONTENT = `${FILES}/content`;
const PATH = pathHeader("/data/notes.txt");
const HELLO = Buffer.from("hello world");
const ETAG = '"v-1"';
const DATE = MADE.toUTCString();

let gateway: Gateway;
let port: number;
let asked: ReadFileRequest[];
beforeEach(async () => {
  gateway = await openGateway({ rpcTimeoutMs: 5_000 });
  await gateway.app.listen({ host: "127.0.0.1", port: 0 });
  port = (gateway.app.server.address() as AddressInfo).port;
  asked = [];
  serve(HELLO);
});
afterEach(() => gateway.close());

/** Answers with a file, in chunks of three bytes. */
function serve(content: Buffer, modifiedAt = MADE): void {
  gateway.services.files.readFile = async function* (request) {
    asked.push(request);
    const size = content.length;
    const { offset, length = size, last } = request;
    const begin =
      last === undefined ? Math.min(Number(offset), size) : Math.max(size - Number(last), 0);
    const part = content.subarray(begin, last === undefined ? begin + Number(length) : size);
    yield opened(size, begin, part.length, modifiedAt);
    for (let at = 0; at < part.length; at += 3) yield data(part.subarray(at, at + 3));
  };
}

function opened(size: number, offset = 0, length = size - offset, modifiedAt = MADE) {
  const info = fileMessage({ size: BigInt(size), modifiedAt: timestampFromDate(modifiedAt) });
  const value = { info, version: "v-1", offset: BigInt(offset), length: BigInt(length) };
  return { part: { case: "opened" as const, value } };
}

const data = (value: Uint8Array) => ({
  part: { case: "data" as const, value: Uint8Array.from(value) },
});

/** Until the call is over. */
const over = ({ signal }: HandlerContext) =>
  signal.aborted ? Promise.resolve() : once(signal, "abort").then(() => undefined);

interface Answer {
  response: IncomingMessage;
  status: number | undefined;
  headers: IncomingMessage["headers"];
  /** All of it; rejects where it broke off. */
  body: () => Promise<string>;
}

async function get(headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const all = { authorization: `Bearer ${KEY}`, ...PATH, ...headers };
  const request = httpRequest({ port, path: CONTENT, method, headers: all });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const body = async () => Buffer.concat(await response.toArray()).toString();
  return { response, status: response.statusCode, headers: response.headers, body };
}

describe("a file", () => {
  test("comes with what a client and a browser need to know of it", async () => {
    const { status, headers, body } = await get({ "x-request-id": "mine" });
    expect(await body()).toBe("hello world");
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "accept-ranges": "bytes",
      "content-disposition": "attachment",
      "content-length": "11",
      "content-type": "application/octet-stream",
      etag: ETAG,
      "last-modified": DATE,
      "ratelimit-limit": "2000",
      "x-content-type-options": "nosniff",
      "x-request-id": "mine",
    });
    expect(headers["transfer-encoding"]).toBeUndefined();
    expect(headers["content-range"]).toBeUndefined();
    expect(asked).toMatchObject([{ volumeId: VOLUME_ID, path: "/data/notes.txt", offset: 0n }]);
  });

  test("may be empty", async () => {
    serve(Buffer.alloc(0));
    const { status, headers, body } = await get();
    expect([status, headers["content-length"], await body()]).toEqual([200, "0", ""]);
  });

  test("answers HEAD with its headers, and is not read", async () => {
    let ended = false;
    gateway.services.files.readFile = async function* () {
      try {
        yield opened(2 ** 40);
        throw new Error("it is read");
      } finally {
        ended = true;
      }
    };
    const { status, headers, body } = await get({ range: "bytes=0-1" }, "HEAD");
    expect([status, headers["content-length"], headers.etag]).toEqual([200, String(2 ** 40), ETAG]);
    expect(await body()).toBe("");
    await expect.poll(() => ended).toBe(true);
  });

  test("whose time is no past one has no Last-Modified", async () => {
    for (const at of [new Date(Date.now() + 3_600_000), new Date(-1)]) {
      serve(HELLO, at);
      expect((await get()).headers["last-modified"]).toBeUndefined();
    }
  });

  test("leaves its connection good for the next", async () => {
    const text = [`GET ${CONTENT} HTTP/1.1`, "host: x", `authorization: Bearer ${KEY}`];
    const path = `x-msb-file-path: ${PATH["x-msb-file-path"]}`;
    const head = [...text, path].join("\r\n");
    const { connect } = await import("node:net");
    const socket = connect(port, "127.0.0.1");
    socket.write(`${head}\r\n\r\n${head}\r\nconnection: close\r\n\r\n`);
    const all = Buffer.concat(await socket.toArray()).toString();
    expect(all.match(/hello world/g)).toHaveLength(2);
  });
});

describe("a range", () => {
  const ranged = async (range: string, more = {}) => {
    const { status, headers, body } = await get({ range, ...more });
    return [status, headers["content-range"], headers["content-length"], await body()];
  };

  test.each([
    ["bytes=0-4", "bytes 0-4/11", "hello"],
    ["bytes=6-", "bytes 6-10/11", "world"],
    ["bytes=6-999", "bytes 6-10/11", "world"],
    ["bytes=0-", "bytes 0-10/11", "hello world"],
    ["bytes=10-10", "bytes 10-10/11", "d"],
    ["bytes=-5", "bytes 6-10/11", "world"],
    ["bytes=-99", "bytes 0-10/11", "hello world"],
    ["BYTES=0-0", "bytes 0-0/11", "h"],
    [`bytes=0-${"9".repeat(40)}`, "bytes 0-10/11", "hello world"],
    [`bytes=-${"9".repeat(40)}`, "bytes 0-10/11", "hello world"],
  ])("%s is a part", async (range, contentRange, body) => {
    expect(await ranged(range)).toEqual([206, contentRange, String(body.length), body]);
    expect(asked).toHaveLength(1);
  });

  test.each([
    "bytes=0-1,3-4",
    "bytes=4-0",
    "bytes=-",
    "bytes=a-b",
    "lines=0-4",
    "bytes 0-4",
    "bytes=0x0-4",
    "",
  ])("%s is none: all is sent", async (range) => {
    expect(await ranged(range)).toEqual([200, undefined, "11", "hello world"]);
  });

  test.each(["bytes=11-", "bytes=11-12", "bytes=-0", `bytes=${"9".repeat(40)}-`])(
    "%s has nothing in it",
    async (range) => {
      const options = { headers: { ...PATH, range } };
      const answer = await gateway.call("GET", CONTENT, undefined, options);
      expect(answer).toMatchObject({
        status: 416,
        headers: { "content-range": "bytes */11" },
        body: { error: { code: "invalid_request" } },
      });
    },
  );

  test("of an empty file has nothing in it, but for its end", async () => {
    serve(Buffer.alloc(0));
    const [status, range] = await ranged("bytes=0-0");
    expect([status, range]).toEqual([416, "bytes */0"]);
    expect(await ranged("bytes=-5")).toEqual([200, undefined, "0", ""]);
  });

  test("is of the content that the client knows, or all is sent", async () => {
    const range = "bytes=0-4";
    expect(await ranged(range, { "if-range": ETAG })).toEqual([206, "bytes 0-4/11", "5", "hello"]);
    for (const known of ['"v-0"', `W/${ETAG}`, DATE, "v-1", ""])
      expect(await ranged(range, { "if-range": known })).toEqual([
        200,
        undefined,
        "11",
        "hello world",
      ]);
    expect((await ranged("bytes=99-", { "if-range": '"v-0"' }))[0]).toBe(200);
  });
});

describe("what the client wants no other than", () => {
  test.each<[string, number]>([
    [ETAG, 200],
    [`"v-0", ${ETAG}`, 200],
    ["*", 200],
    ['"v-0"', 412],
    [`W/${ETAG}`, 412],
    ["v-1", 412],
    ["", 412],
  ])("If-Match: %s: %i", async (wanted, status) => {
    const answer = await get({ "if-match": wanted });
    expect(answer.status).toBe(status);
    const body = await answer.body();
    if (status === 200) return expect(body).toBe("hello world");
    const { error } = JSON.parse(body);
    expect(error).toMatchObject({ code: "invalid_request" });
    expect(error.details.errors).toMatchObject([{ field: "headers.if-match" }]);
    // A range of another content neither.
    expect((await get({ "if-match": wanted, range: "bytes=0-1" })).status).toBe(412);
  });
});

describe("what the client has already", () => {
  const later = new Date(MADE.getTime() + 86_400_000).toUTCString();
  const earlier = new Date(MADE.getTime() - 86_400_000).toUTCString();
  test.each<[Record<string, string>, number]>([
    [{ "if-none-match": ETAG }, 304],
    [{ "if-none-match": `W/${ETAG}` }, 304],
    [{ "if-none-match": `"a", W/"b" , ${ETAG}` }, 304],
    [{ "if-none-match": "*" }, 304],
    [{ "if-none-match": '"v-0"' }, 200],
    [{ "if-none-match": "v-1" }, 200],
    [{ "if-none-match": '"v-0"', "if-modified-since": later }, 200],
    [{ "if-modified-since": DATE }, 304],
    [{ "if-modified-since": later }, 304],
    [{ "if-modified-since": earlier }, 200],
    [{ "if-modified-since": "2030" }, 200],
    [{ "if-none-match": ETAG, range: "bytes=0-1" }, 304],
    [{ "if-none-match": ETAG, range: "bytes=99-" }, 304],
  ])("%o: %i", async (headers, status) => {
    const answer = await get(headers);
    expect(answer.status).toBe(status);
    expect(answer.headers.etag).toBe(ETAG);
    expect(await answer.body()).toBe(status === 200 ? "hello world" : "");
    if (status !== 304) return;
    expect(answer.headers["last-modified"]).toBe(DATE);
    expect(answer.headers["content-length"]).toBeUndefined();
    expect(answer.headers["content-type"]).toBeUndefined();
  });
});

describe("a refusal", () => {
  test("is a normal answer, whatever it is, as long as nothing was sent", async () => {
    const refused = (reason: Reason) => new ServiceError(reason, "'/a' is a directory");
    const cases = [
      [refused("VOLUME_NOT_FOUND"), 404, "volume_not_found"],
      [refused("VOLUME_FILE_NOT_FOUND"), 404, "volume_file_not_found"],
      [refused("INVALID_VOLUME_PATH"), 400, "invalid_volume_path"],
      [refused("FILE_CONFLICT"), 409, "invalid_request"],
      [new Error("a bug"), 500, "internal"],
    ] as const;
    for (const [error, status, code] of cases) {
      // biome-ignore lint/correctness/useYield: it fails before it yields
      gateway.services.files.readFile = async function* () {
        throw error;
      };
      const answer = await gateway.call("GET", CONTENT, undefined, { headers: PATH });
      expect(answer).toMatchObject({ status, body: { error: { code } } });
      expect(answer.headers["content-disposition"]).toBeUndefined();
    }
  });

  test("comes in time where nothing opens", async () => {
    const hasty = await openGateway({ rpcTimeoutMs: 20 });
    const { promise: hungUp, resolve } = Promise.withResolvers<void>();
    hasty.services.files.readFile = async function* (_request, context) {
      await over(context);
      resolve();
      yield opened(1);
    };
    expect(await hasty.call("GET", CONTENT, undefined, { headers: PATH })).toMatchObject({
      status: 504,
      body: { error: { code: "deadline_exceeded" } },
    });
    await hungUp;
    await hasty.close();
  });
});

// By whether any of it was on its way.
const BROKEN = /aborted|socket hang up/;

describe("an end before its time breaks the connection off", () => {
  const failing: [string, (context: HandlerContext) => AsyncGenerator<object>][] = [
    [
      "where the service fails",
      async function* () {
        yield data(HELLO.subarray(0, 5));
        throw new ConnectError("gone", Code.Unavailable);
      },
    ],
    [
      "where there is less than was said",
      async function* () {
        yield data(HELLO.subarray(0, 5));
      },
    ],
    [
      "where there is more",
      async function* () {
        yield data(Buffer.from("hello world!"));
      },
    ],
  ];
  test.each(failing)("%s", async (_name, rest) => {
    gateway.services.files.readFile = async function* (_request, context) {
      yield opened(HELLO.length);
      yield* rest(context) as AsyncGenerator<ReturnType<typeof data>>;
    };
    await expect(get().then(({ body }) => body())).rejects.toThrow(BROKEN);
    await expect.poll(() => gateway.logged.length).toBe(1);
  });

  test("of a list too", async () => {
    gateway.services.files.listFiles = async function* () {
      yield { entries: [fileMessage()] };
      throw new ConnectError("gone", Code.Unavailable);
    };
    const read = async () => {
      const request = httpRequest({
        port,
        path: FILES,
        headers: { authorization: `Bearer ${KEY}` },
      });
      request.end();
      const [response] = (await once(request, "response")) as [IncomingMessage];
      return response.toArray();
    };
    await expect(read()).rejects.toThrow(BROKEN);
  });

  /** A file that never ends, and whether its reader is gone. */
  function endless(target: Gateway) {
    const state = { sent: 0, ended: false };
    target.services.files.readFile = async function* () {
      try {
        yield opened(2 ** 40);
        for (; ; state.sent += 1) yield data(Buffer.alloc(64 * 1024));
      } finally {
        state.ended = true;
      }
    };
    return state;
  }

  test("by a client that hangs up, and ends the call", async () => {
    const state = endless(gateway);
    const { response } = await get();
    await once(response, "readable");
    response.destroy();
    await expect.poll(() => state.ended).toBe(true);
    expect(gateway.logged).toEqual([]);
  });

  test("by a gateway that drains", async () => {
    const state = endless(gateway);
    const { response, body } = await get();
    const broken = expect(body()).rejects.toThrow("aborted");
    await once(response, "readable");
    await gateway.close();
    await broken;
    await expect.poll(() => state.ended).toBe(true);
  });

  test("by a key that is revoked", async () => {
    const state = endless(gateway);
    const { body } = await get();
    const broken = expect(body()).rejects.toThrow("aborted");
    gateway.services.organization.authenticateKey = async () => {
      throw new ServiceError("INVALID_API_KEY", "unauthorized");
    };
    await broken;
    await expect.poll(() => state.ended).toBe(true);
  });

  test("by nothing that moves", async () => {
    const idle = await openGateway({ transferIdleMs: 50 });
    await idle.app.listen({ host: "127.0.0.1", port: 0 });
    port = (idle.app.server.address() as AddressInfo).port;
    const state = endless(idle);
    const { response } = await get();
    response.pause();
    await expect.poll(() => state.ended).toBe(true);
    await idle.close();
  });
});

test("a client that does not read stops the source", async () => {
  const CHUNK = 64 * 1024;
  let sent = 0;
  gateway.services.files.readFile = async function* () {
    yield opened(1_600 * CHUNK);
    for (; sent < 1_600; sent += 1) yield data(Buffer.alloc(CHUNK));
  };
  const { response } = await get();
  response.pause();
  let last = -1;
  const settled = () => {
    const same = sent === last;
    last = sent;
    return same;
  };
  await expect.poll(settled, { interval: 200 }).toBe(true);
  // Of a hundred megabytes, what the sockets of both sides hold.
  expect(sent).toBeLessThan(250);
  let bytes = 0;
  for await (const chunk of response) bytes += chunk.length;
  expect(bytes).toBe(1_600 * CHUNK);
});
