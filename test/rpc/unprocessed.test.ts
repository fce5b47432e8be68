import { once } from "node:events";
import {
  constants,
  createServer,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import {
  CreateSandboxResponseSchema,
  SandboxService,
} from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { createRemoteTransport } from "../../runtime/rpc/client.ts";
import { replay } from "../../runtime/rpc/replay.ts";
import type { Routes } from "../../runtime/rpc/routes.ts";
import { markUnprocessed } from "../../runtime/rpc/unprocessed.ts";
import { freePort } from "../support/ports.ts";
import { asCaller, startServer, TOKEN } from "./support.ts";

// A call that changes something is made again where nobody has begun with it, and nowhere else.

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) await clean();
});

function clients(port: number) {
  const transport = createRemoteTransport({ baseUrl: `http://127.0.0.1:${port}`, token: TOKEN });
  cleanups.push(() => transport.close());
  return {
    sandboxes: createClient(SandboxService, transport),
    files: createClient(VolumeFileService, transport),
  };
}

type Handle = (stream: ServerHttp2Stream, path: string) => void;

/** A server that does with each call what the next of `handles` does; the last one stays. */
async function rawServer(...handles: Handle[]) {
  const sessions = new Set<Http2Session>();
  let calls = 0;
  const server = createServer()
    .on("session", (session) => sessions.add(session.on("error", () => undefined)))
    .on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      const handle = handles[Math.min(calls, handles.length - 1)];
      calls += 1;
      stream.on("error", () => undefined);
      handle?.(stream, String(headers[":path"]));
    });
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanups.push(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { ...clients(port), calls: () => calls, sessions };
}

const MADE = toBinary(
  CreateSandboxResponseSchema,
  create(CreateSandboxResponseSchema, { sandbox: { name: "made" } }),
);

const answer: Handle = (stream) => {
  stream.resume();
  stream.respond({ ":status": 200, "content-type": "application/proto" });
  stream.end(MADE);
};

const reset =
  (code: number): Handle =>
  (stream) =>
    stream.close(code);

const REQUEST = { spec: { image: "alpine" } };

async function codeOf(call: Promise<unknown>): Promise<Code> {
  return call.then(
    () => Promise.reject(new Error("the call did not fail")),
    (error) => ConnectError.from(error).code,
  );
}

describe("a create is made again", () => {
  test("that the server refused to take", async () => {
    const refuse = reset(constants.NGHTTP2_REFUSED_STREAM);
    const { sandboxes, calls } = await rawServer(refuse, refuse, answer);
    const { sandbox } = await sandboxes.createSandbox(REQUEST, asCaller());
    expect(sandbox?.name).toBe("made");
    expect(calls()).toBe(3);
  });

  test("that a GOAWAY leaves out, and one that it covers is not", async () => {
    const held: ServerHttp2Stream[] = [];
    const hold: Handle = (stream) => void held.push(stream);
    const { sandboxes, calls } = await rawServer(hold, hold, answer);
    const covered = sandboxes.createSandbox(REQUEST, asCaller());
    await expect.poll(calls).toBe(1);
    const leftOut = sandboxes.createSandbox(REQUEST, asCaller());
    await expect.poll(calls).toBe(2);
    const [first] = held;
    first?.session?.goaway(constants.NGHTTP2_NO_ERROR, first.id);
    expect((await leftOut).sandbox?.name).toBe("made");
    expect(calls()).toBe(3);
    if (first) answer(first, "");
    expect((await covered).sandbox?.name).toBe("made");
    expect(calls()).toBe(3);
  });

  test("that found nobody to connect to, until somebody listens", async () => {
    const port = await freePort();
    const { sandboxes } = clients(port);
    const call = sandboxes.createSandbox(REQUEST, { ...asCaller(), timeoutMs: 10_000 });
    expect(await Promise.race([call, tick()])).toBe("later");
    const server = await startServer({ port });
    cleanups.push(() => server.close());
    expect((await call).sandbox?.id).toBeDefined();
  });

  test("and an upload with all that it sends", async () => {
    const bodies: Buffer[] = [];
    const take: Handle = (stream) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        bodies.push(Buffer.concat(chunks));
        stream.respond({ ":status": 200, "content-type": "application/connect+proto" });
        // An empty message, then the end of the stream.
        stream.end(
          Buffer.concat([Buffer.alloc(5), Buffer.from([2, 0, 0, 0, 2]), Buffer.from("{}")]),
        );
      });
    };
    const { files, calls } = await rawServer(reset(constants.NGHTTP2_REFUSED_STREAM), take);
    async function* upload() {
      yield { part: { case: "target" as const, value: { path: "a-path", length: 4n } } };
      yield { part: { case: "data" as const, value: Buffer.from("data") } };
    }
    await files.writeFile(upload(), asCaller());
    expect(calls()).toBe(2);
    expect(String(bodies[0])).toMatch(/a-path.*data/s);
  });
});

describe("a create that may have been processed is made once, where the server", () => {
  test.each<[string, Handle]>([
    ["cancels it", reset(constants.NGHTTP2_CANCEL)],
    ["fails", reset(constants.NGHTTP2_INTERNAL_ERROR)],
    ["has enough", reset(constants.NGHTTP2_ENHANCE_YOUR_CALM)],
    ["breaks the connection", (stream) => stream.session?.destroy()],
    ["breaks the connection with an error", (stream) => stream.session?.destroy(new Error("no"))],
    ["resets the connection", (stream) => stream.session?.socket.resetAndDestroy?.()],
    [
      "says that it is unavailable",
      (stream) => {
        stream.resume();
        stream.respond({ ":status": 503, "content-type": "application/json" });
        stream.end('{"code":"unavailable"}');
      },
    ],
  ])("%s", async (_, handle) => {
    const { sandboxes, calls } = await rawServer(handle, answer);
    const code = await codeOf(
      sandboxes.createSandbox(REQUEST, { ...asCaller(), timeoutMs: 5_000 }),
    );
    expect(code).not.toBe(Code.DeadlineExceeded);
    expect(calls()).toBe(1);
  });
});

test("a create is made once where the server begins to answer, and says then that it refused", async () => {
  // Node's server does not let itself do that, so frame by frame.
  const HEADERS = 1;
  const RST_STREAM = 3;
  const SETTINGS = 4;
  const END_HEADERS = 4;
  const type = Buffer.from("application/proto");
  // :status 200, and content-type as it is, by their numbers in HPACK's table.
  const head = Buffer.concat([Buffer.from([0x88, 0x0f, 0x10, type.length]), type]);
  const refused = Buffer.from([0, 0, 0, constants.NGHTTP2_REFUSED_STREAM]);
  let calls = 0;
  const server = createTcpServer((socket) => {
    cleanups.push(() => socket.destroy());
    let seen = Buffer.alloc(0);
    socket.on("error", () => undefined).write(frame(SETTINGS, 0, 0, Buffer.alloc(0)));
    socket.on("data", async (chunk) => {
      seen = Buffer.concat([seen, chunk]);
      const begun = streamsIn(seen).length;
      if (begun === calls) return;
      calls = begun;
      const id = begun * 2 - 1;
      socket.write(frame(HEADERS, END_HEADERS, id, head));
      await tick();
      socket.write(frame(RST_STREAM, 0, id, refused));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  cleanups.push(() => server.close());
  const { sandboxes } = clients((server.address() as AddressInfo).port);
  const call = sandboxes.createSandbox(REQUEST, { ...asCaller(), timeoutMs: 5_000 });
  expect(await codeOf(call)).toBe(Code.Unavailable);
  expect(calls).toBe(1);

  function frame(kind: number, flags: number, id: number, payload: Buffer): Buffer {
    const front = Buffer.alloc(9);
    front.writeUIntBE(payload.length, 0, 3);
    front.writeUInt8(kind, 3);
    front.writeUInt8(flags, 4);
    front.writeUInt32BE(id, 5);
    return Buffer.concat([front, payload]);
  }
  /** Of the calls that a client has begun. */
  function streamsIn(bytes: Buffer): number[] {
    const ids: number[] = [];
    const preface = 24;
    for (let at = preface; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3))
      if (bytes.readUInt8(at + 3) === HEADERS) ids.push(bytes.readUInt32BE(at + 5));
    return ids;
  }
});

test("creates go on through restarts of their server, each made once", async () => {
  const port = await freePort();
  let made = 0;
  const routes: Routes = (router) =>
    router.service(SandboxService, {
      async createSandbox() {
        made += 1;
        return { sandbox: { id: "an-id" } };
      },
    });
  const serve = () => startServer({ port, routes });
  const { sandboxes } = clients(port);
  let server = await serve();
  let going = true;
  let answered = 0;
  const work = Array.from({ length: 8 }, async () => {
    while (going) {
      const { sandbox } = await sandboxes.createSandbox(REQUEST, asCaller());
      expect(sandbox?.id).toBeDefined();
      answered += 1;
    }
  });
  for (let i = 1; i <= 10; i += 1) {
    await expect.poll(() => answered).toBeGreaterThan(i * 30);
    await server.close();
    server = await serve();
  }
  going = false;
  await Promise.all(work);
  await server.close();
  expect(made).toBe(answered);
}, 60_000);

describe("messages that are sent again", () => {
  async function* numbers(count: number) {
    for (let i = 1; i <= count; i += 1) yield i;
  }

  test("are all of them while few were taken", async () => {
    const sent = replay(numbers(6));
    const iterator = sent.attempt()[Symbol.asyncIterator]();
    for (let i = 0; i < 4; i += 1) await iterator.next();
    await iterator.throw?.(markUnprocessed(new Error("refused")));
    await iterator.return?.();
    expect(sent.isWhole).toBe(true);
    expect(await Array.fromAsync(sent.attempt())).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test("are not whole once more was taken", async () => {
    const sent = replay(numbers(30));
    const iterator = sent.attempt()[Symbol.asyncIterator]();
    for (let i = 0; i < 20; i += 1) await iterator.next();
    expect(sent.isWhole).toBe(true);
    await iterator.next();
    expect(sent.isWhole).toBe(false);
  });

  test("are kept for a while only", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const sent = replay(numbers(6));
    await sent.attempt()[Symbol.asyncIterator]().next();
    vi.advanceTimersByTime(4_999);
    expect(sent.isWhole).toBe(true);
    vi.advanceTimersByTime(1);
    expect(sent.isWhole).toBe(false);
  });

  test("end with a try that may have been processed", async () => {
    let ended = false;
    async function* messages() {
      try {
        yield 1;
        yield 2;
      } finally {
        ended = true;
      }
    }
    const iterator = replay(messages()).attempt()[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.throw?.(new Error("broken")).catch(() => undefined);
    expect(ended).toBe(true);
  });
});

const tick = () => new Promise((resolve) => setTimeout(resolve, 100, "later"));
