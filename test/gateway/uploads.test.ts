import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import type { HandlerContext } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type {
  WriteFileRequest,
  WriteTarget,
} from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { type Reason, ServiceError } from "../../runtime/errors.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { KEY, ORG_ID } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";
import { FILES, fileMessage, pathHeader, VOLUME_ID } from "./support/volumes.ts";

const CONTENT = `${FILES}/content`;
const PATH = pathHeader("/data/notes.txt");
const TARGET = { volumeId: VOLUME_ID, path: "/data/notes.txt" };

/** A write as the service sees it. */
interface Write {
  target: WriteTarget | undefined;
  bytes: number;
  text: string;
  /** It came to its end, or failed, or was aborted. */
  end: "whole" | "broken" | undefined;
}

let gateway: Gateway;
let port: number;
let writes: Write[];
beforeEach(async () => {
  gateway = await openGateway();
  await listen(gateway);
  writes = [];
  take();
});
afterEach(() => gateway.close());

async function listen({ app }: Gateway): Promise<void> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  port = (app.server.address() as AddressInfo).port;
}

/** Takes what comes, as slowly as `pause` says. */
function take(pause: (write: Write) => unknown = () => undefined, to = gateway): void {
  to.services.files.writeFile = async (messages, context) => {
    const write: Write = { target: undefined, bytes: 0, text: "", end: undefined };
    let ended = false;
    writes.push(write);
    expect(requireCaller(context).orgId).toBe(ORG_ID);
    try {
      for await (const message of messages) {
        ended = message.part.case === "end";
        note(write, message);
        await pause(write);
      }
      const { length } = write.target ?? {};
      const isWhole = length === undefined ? ended : length === BigInt(write.bytes);
      write.end = isWhole ? "whole" : "broken";
    } catch (error) {
      write.end = "broken";
      throw error;
    }
    return { info: fileMessage({ size: BigInt(write.bytes) }) };
  };
}

function note(write: Write, { part }: WriteFileRequest): void {
  if (part.case === "target") write.target = part.value;
  if (part.case !== "data") return;
  write.bytes += part.value.length;
  if (write.text.length < 100) write.text += Buffer.from(part.value).toString();
}

function put(headers: Record<string, string | number> = {}): ClientRequest {
  const all = { authorization: `Bearer ${KEY}`, ...PATH, ...headers };
  const request = httpRequest({ port, path: CONTENT, method: "PUT", headers: all });
  // Whether it broke is seen on the answer.
  return request.on("error", () => undefined);
}

async function answerOf(request: ClientRequest) {
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString();
  return { status: response.statusCode, headers: response.headers, body: JSON.parse(text) };
}

/** The connection as bytes. */
function talk(lines: string[], body = "", key = KEY): Socket {
  const own = [`PUT ${CONTENT} HTTP/1.1`, "host: x", `authorization: Bearer ${key}`];
  const path = `x-msb-file-path: ${PATH["x-msb-file-path"]}`;
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  socket.write(`${[...own, path, ...lines].join("\r\n")}\r\n\r\n${body}`);
  return socket;
}

const textOf = async (socket: Socket) => Buffer.concat(await socket.toArray()).toString();

describe("a file", () => {
  test("is passed on with its length where that is known", async () => {
    const answer = await answerOf(put({ "content-length": 5 }).end("hello"));
    expect(answer).toMatchObject({
      status: 200,
      body: { metadata: { path: "/data/notes.txt", kind: "file", size: 5, created_at: null } },
    });
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
    const request = put();
    request.write("hel");
    expect((await answerOf(request.end("lo"))).body.metadata.size).toBe(5);
    expect(writes).toMatchObject([
      { target: { ...TARGET, length: 5n }, text: "hello", end: "whole" },
      { target: TARGET, text: "hello", end: "whole" },
    ]);
  });

  test("goes on in messages of the size that is set, and whole", async () => {
    const small = await openGateway({ pieceBytes: 1_000 });
    onTestFinished(small.close);
    await listen(small);
    const pieces: Uint8Array[] = [];
    small.services.files.writeFile = async (messages) => {
      for await (const { part } of messages) if (part.case === "data") pieces.push(part.value);
      return { info: fileMessage() };
    };
    const body = Buffer.from(Array.from({ length: 200_001 }, (_, i) => i % 251));
    expect((await answerOf(put({ "content-length": body.length }).end(body))).status).toBe(200);
    expect(Math.max(...pieces.map(({ length }) => length))).toBe(1_000);
    expect(Buffer.concat(pieces).equals(body)).toBe(true);
  });

  test("may be empty", async () => {
    await answerOf(put({ "content-length": 0 }).end());
    await answerOf(put({ "transfer-encoding": "chunked" }).end());
    const text = await textOf(talk(["connection: close"]));
    expect(text).toMatch(/^HTTP\/1\.1 200 /);
    const lengths = writes.map(({ target, end }) => [target?.length, end]);
    expect(lengths).toEqual([
      [0n, "whole"],
      [undefined, "whole"],
      [0n, "whole"],
    ]);
  });

  test("may be of any type, known or not", async () => {
    const types = [
      "application/json",
      "text/plain; charset=latin1",
      "x",
      "a/b; =",
      "multipart/form-data",
    ];
    for (const type of types)
      expect((await answerOf(put({ "content-type": type }).end("{"))).status).toBe(200);
    expect(writes.map(({ text }) => text)).toEqual(types.map(() => "{"));
  });

  test("has no limit of its own", async () => {
    const size = 48 * 1024 * 1024;
    const request = put({ "content-length": size });
    const answered = answerOf(request);
    request.end(Buffer.alloc(size));
    expect((await answered).body.metadata.size).toBe(size);
  });

  test("is asked for where the client waits for that, and never where it is refused", async () => {
    const text = await textOf(
      talk(["content-length: 5", "expect: 100-continue", "connection: close"], "hello"),
    );
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
    const waits = ["content-length: 5", "expect: 100-continue"];
    expect(await textOf(talk(waits, "", "x"))).toMatch(/^HTTP\/1\.1 401 /);
    const part = [...waits, "content-range: bytes 0-4/11"];
    expect(await textOf(talk(part))).toMatch(/^HTTP\/1\.1 400 /);
    gateway.services.files.writeFile = async () => {
      throw new ServiceError("VOLUME_NOT_FOUND", "");
    };
    expect(await textOf(talk(waits))).toMatch(/^HTTP\/1\.1 404 /);
    expect(writes).toHaveLength(1);
  });

  test("leaves its connection good for the next", async () => {
    const body = `hello${[`PUT ${CONTENT} HTTP/1.1`, "host: x", `authorization: Bearer ${KEY}`].join("\r\n")}`;
    const rest = `x-msb-file-path: ${PATH["x-msb-file-path"]}\r\ncontent-length: 3\r\nconnection: close\r\n\r\nbye`;
    const text = await textOf(talk(["content-length: 5"], `${body}\r\n${rest}`));
    expect(text.match(/HTTP\/1\.1 200 /g)).toHaveLength(2);
    expect(writes.map((write) => write.text)).toEqual(["hello", "bye"]);
  });
});

describe("a JSON body", () => {
  test("is asked for too where the client waits for that", async () => {
    const start = [`POST ${FILES}/mkdir HTTP/1.1`, "host: x", "content-type: application/json"];
    const lines = [...start, "expect: 100-continue", "content-length: 13", "connection: close"];
    gateway.services.files.makeDirectory = async () => ({});
    const send = (key: string) => {
      const socket = connect(port, "127.0.0.1");
      socket.write(`${[...lines, `authorization: Bearer ${key}`].join("\r\n")}\r\n\r\n`);
      socket.once("data", () => socket.writable && socket.write('{"path":"/a"}'));
      return textOf(socket);
    };
    expect(await send("x")).toMatch(/^HTTP\/1\.1 401 /);
    const taken = await send(KEY);
    expect(taken).toMatch(/^HTTP\/1\.1 100 Continue/);
  });
});

describe("a refusal", () => {
  /** Sends without end until it is answered, and says how much was taken. */
  async function flood(headers: Record<string, string>) {
    const request = put({ "content-length": 2 ** 31, ...headers });
    const chunk = Buffer.alloc(64 * 1024);
    const answered = answerOf(request);
    let sent = 0;
    let wake = () => {};
    request.on("drain", () => wake()).once("close", () => wake());
    for (; !request.closed && sent < 2 ** 31; sent += chunk.length)
      if (!request.write(chunk) && !request.closed)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    return { ...(await answered), sent };
  }

  test.each([
    [{ authorization: "Bearer x" }, 401],
    [{ "x-msb-file-path": "=" }, 400],
  ])("of %o comes while the body is on its way, and ends that", async (headers, status) => {
    const answer = await flood(headers);
    expect(answer.status).toBe(status);
    expect(answer.headers.connection).toBe("close");
    expect(answer.sent).toBeLessThan(2 ** 31);
    expect(writes).toEqual([]);
  });

  test("of the service comes at once, with what it did not take unread", async () => {
    gateway.services.files.writeFile = async (messages) => {
      let bytes = 0;
      for await (const { part } of messages) {
        if (part.case === "data") bytes += part.value.length;
        if (bytes < 1_000_000) continue;
        const metadata = { quota: "capacity_gib", limit: "5", used: "5", requested: "6" };
        throw new ServiceError("QUOTA_EXCEEDED", "quota exceeded", { metadata });
      }
      return {};
    };
    const answer = await flood({});
    expect(answer).toMatchObject({
      status: 403,
      body: { error: { code: "quota_exceeded", details: { quota: "capacity_gib" } } },
    });
    expect(answer.sent).toBeLessThan(2 ** 31);
  });

  test("has its public answer, whatever it is", async () => {
    const refused = (reason: Reason) => new ServiceError(reason, "'/a' is a directory");
    const cases = [
      [refused("VOLUME_NOT_FOUND"), 404, "volume_not_found"],
      [refused("INVALID_VOLUME_PATH"), 400, "invalid_volume_path"],
      [refused("INVALID_SANDBOX_CONFIG"), 400, "invalid_sandbox_config"],
      [refused("FILE_CONFLICT"), 409, "invalid_request"],
      [refused("SERVICE_UNAVAILABLE"), 503, "service_unavailable"],
      [new Error("a bug"), 500, "internal"],
    ] as const;
    for (const [error, status, code] of cases) {
      gateway.services.files.writeFile = async () => {
        throw error;
      };
      const answer = await gateway.call("PUT", CONTENT, Buffer.from("x"), { headers: PATH });
      expect(answer).toMatchObject({ status, body: { error: { code } } });
    }
  });

  test("of a part of a file, of one that no file can be, and of conditions that nobody keeps", async () => {
    for (const [header, value] of [
      ["content-range", "bytes 0-4/11"],
      ["content-length", "9223372036854775808"],
      ["transfer-encoding", "gzip, chunked"],
      ["if-none-match", "*"],
      ["if-match", '"v-1"'],
      ["if-unmodified-since", "Sat, 21 Nov 2026 19:47:53 GMT"],
    ] as const) {
      const { status, body } = await answerOf(put({ [header]: value }).end());
      const headers = { "content-type": undefined };
      expect(faultPaths({ status: status ?? 0, headers, body })).toEqual([`headers.${header}`]);
    }
    expect(writes).toEqual([]);
  });
});

describe("what does not come wholly leaves nothing", () => {
  const broken = () => expect.poll(() => writes.map(({ end }) => end)).toEqual(["broken"]);
  const begun = () => expect.poll(() => writes[0]?.text).toBe("hello");

  test("of a client that hangs up", async () => {
    for (const length of ["content-length: 11", "transfer-encoding: chunked"]) {
      writes = [];
      const socket = talk([length], length.includes("chunked") ? "5\r\nhello\r\n" : "hello");
      await begun();
      socket.destroy();
      await broken();
    }
    expect(gateway.logged).toEqual([]);
  });

  test("of a client that sends less than it said", async () => {
    const socket = talk(["content-length: 11"], "hello");
    await begun();
    socket.end();
    expect(await textOf(socket)).toMatch(/^(HTTP\/1\.1 400 |$)/);
    await broken();
  });

  test("of a client whose chunks are none", async () => {
    const socket = talk(["transfer-encoding: chunked"], "5\r\nhello\r\nzz\r\n");
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 400 /);
    await broken();
  });

  test("of a client that hangs up while the service is busy", async () => {
    const { promise: busy, resolve: go } = Promise.withResolvers<void>();
    take(({ bytes }) => (bytes > 0 ? busy : undefined));
    const socket = talk(["content-length: 11"], "hello");
    await begun();
    const closed = new Promise((resolve) =>
      gateway.app.server.getConnections(() => resolve(once(socket, "close"))),
    );
    socket.destroy();
    await closed;
    const connections = () =>
      new Promise((resolve) => gateway.app.server.getConnections((_error, n) => resolve(n)));
    await expect.poll(connections).toBe(0);
    go();
    await broken();
  });

  test("of a gateway that drains", async () => {
    const socket = talk(["content-length: 11"], "hello");
    await begun();
    const text = textOf(socket);
    await gateway.close();
    expect(await text).toMatch(/^HTTP\/1\.1 503 /);
    await broken();
  });

  test("of a key that is revoked", async () => {
    const socket = talk(["content-length: 11"], "hello");
    await begun();
    gateway.services.organization.authenticateKey = async () => {
      throw new ServiceError("INVALID_API_KEY", "unauthorized");
    };
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 401 /);
    await broken();
  });

  test("of a client that says nothing more, and of a service that is too slow", async () => {
    const idle = await openGateway({ transferIdleMs: 50 });
    await listen(idle);
    take(undefined, idle);
    expect(await textOf(talk(["content-length: 11"], "hello"))).toMatch(
      /^HTTP\/1\.1 400 .*did not arrive in time/s,
    );
    await broken();
    idle.services.files.writeFile = async (messages, { signal }: HandlerContext) => {
      for await (const _ of messages) if (signal.aborted) break;
      await once(signal, "abort");
      return {};
    };
    const text = await textOf(talk(["content-length: 5", "connection: close"], "hello"));
    expect(text).toMatch(/^HTTP\/1\.1 504 .*deadline_exceeded/s);
    await idle.close();
  });
});

test("a service that does not read stops the client", async () => {
  const { promise: busy, resolve: go } = Promise.withResolvers<void>();
  take(({ bytes }) => (bytes > 0 ? busy : undefined));
  const CHUNK = Buffer.alloc(64 * 1024);
  const request = put({ "content-length": 1_600 * CHUNK.length });
  const answered = answerOf(request);
  let sent = 0;
  const sending = (async () => {
    for (; sent < 1_600; sent += 1) if (!request.write(CHUNK)) await once(request, "drain");
    request.end();
  })();
  let last = -1;
  const settled = () => {
    const same = sent === last;
    last = sent;
    return same;
  };
  await expect.poll(settled, { interval: 200 }).toBe(true);
  // Of a hundred megabytes, what the sockets of both sides hold.
  expect(sent).toBeLessThan(250);
  go();
  await sending;
  expect((await answered).body.metadata.size).toBe(1_600 * CHUNK.length);
});
