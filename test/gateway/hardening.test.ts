import type { AddressInfo } from "node:net";
import { connect, type Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { KEY } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const SHORT_MS = 300;

let gateway: Gateway;
let port: number;
const sockets: Socket[] = [];
beforeAll(async () => {
  gateway = await openGateway({ headersMs: SHORT_MS, bodyMs: SHORT_MS });
  await gateway.app.listen({ host: "127.0.0.1", port: 0 });
  port = (gateway.app.server.address() as AddressInfo).port;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => gateway.close());

interface Talk {
  socket: Socket;
  /** All that has come. */
  heard(): string;
  /** Resolves when the server has closed the connection. */
  closed: Promise<void>;
}

/** A connection on which these bytes are sent. @param stays this side does not close it because the server does */
function say(bytes: string, stays = false): Talk {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: stays }, () => {
    socket.write(bytes, "latin1");
  });
  sockets.push(socket);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  return {
    socket,
    heard: () => text,
    closed: new Promise((resolve) => socket.once("close", () => resolve())),
  };
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, s]) => s);
const SANDBOXES = "/v1/sandboxes";
const authorized = `host: x\r\nauthorization: Bearer ${KEY}\r\n`;
const post = (headers: string, rest = "") =>
  `POST ${SANDBOXES} HTTP/1.1\r\n${authorized}content-type: application/json\r\n${headers}\r\n\r\n${rest}`;

describe("requests that two parsers could read differently", () => {
  const hidden = "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";
  const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
  test.each([
    [
      "a length and chunks",
      post("content-length: 6\r\ntransfer-encoding: chunked", `0\r\n\r\n${hidden}`),
    ],
    [
      "chunks and a length",
      post("transfer-encoding: chunked\r\ncontent-length: 6", `0\r\n\r\n${hidden}`),
    ],
    ["two lengths", post("content-length: 0\r\ncontent-length: 38", hidden)],
    ["two lengths alike", post("content-length: 2\r\ncontent-length: 2", "{}")],
    ["a list of lengths", post("content-length: 2, 2", "{}")],
    ["a signed length", post("content-length: +2", "{}")],
    ["a hexadecimal length", post("content-length: 0x2", "{}")],
    ["a length of letters", post("content-length: two", "{}")],
    ["an encoding that is not known", post("transfer-encoding: xchunked", chunk)],
    ["an encoding in quotes", post('transfer-encoding: "chunked"', chunk)],
    ["chunked that is not last", post("transfer-encoding: chunked, identity", chunk)],
    ["two encodings", post("transfer-encoding: chunked\r\ntransfer-encoding: identity", chunk)],
    ["a vertical tab before chunked", post("transfer-encoding: \x0bchunked", chunk)],
    ["a space before the colon", post("transfer-encoding : chunked", chunk)],
    ["a header that is folded", post("x-a: b\r\n transfer-encoding: chunked", hidden)],
    [
      "a header that begins with a space",
      `POST ${SANDBOXES} HTTP/1.1\r\n content-length: 5\r\n\r\n`,
    ],
    ["lines that end with LF", `GET /healthz HTTP/1.1\nhost: x\n\n`],
    ["one line that ends with LF", post("x-a: b\nx-c: d\r\ncontent-length: 2", "{}")],
    ["a line that ends with CR", post("x-a: b\rcontent-length: 9\r\ncontent-length: 2", "{}")],
    ["a NUL in a header", post("x-a: \0\r\ncontent-length: 2", "{}")],
    ["a chunk size that is signed", post("transfer-encoding: chunked", "-2\r\n{}\r\n0\r\n\r\n")],
    ["a chunk size in 0x", post("transfer-encoding: chunked", "0x2\r\n{}\r\n0\r\n\r\n")],
    [
      "a chunk size beyond all numbers",
      post("transfer-encoding: chunked", "10000000000000002\r\n{}\r\n0\r\n\r\n"),
    ],
    ["a chunk with more than it says", post("transfer-encoding: chunked", "1\r\n{}\r\n0\r\n\r\n")],
    ["a chunk extension with LF", post("transfer-encoding: chunked", "2;\n{}\r\n0\r\n\r\n")],
    ["two hosts", `GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\nconnection: close\r\n\r\n`],
    [
      "two keys",
      `GET /healthz HTTP/1.1\r\n${authorized}authorization: Bearer x\r\nconnection: close\r\n\r\n`,
    ],
    [
      "chunks in HTTP/1.0",
      `POST /healthz HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["HTTP/0.9", "GET /healthz\r\n"],
    ["HTTP/2 by its preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["HTTP/1.2", "GET /healthz HTTP/1.2\r\nhost: x\r\n\r\n"],
  ])("%s: refused, and what is behind it is no request", async (_name, bytes) => {
    const talk = say(bytes);
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["400"]);
    expect(talk.heard()).toContain('"code":"invalid_request"');
    expect(talk.heard()).not.toContain('{"status":"ok"}');
  });

  test("what a request smuggles is one body, of one request", async () => {
    // Both readings of chunked with an extension agree; the body ends where it says.
    const body = `${(2).toString(16)};a=b\r\n{}\r\n0\r\nx-trailer: ${"a"}\r\n\r\n`;
    const talk = say(
      `${post("transfer-encoding: chunked", body)}GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`,
    );
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["400", "200"]);
    expect(talk.heard()).toContain("image");
  });

  test.each([
    ["CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\n\r\n"],
    [
      "an upgrade to h2c",
      "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
    ],
    [
      "an upgrade to a WebSocket",
      "GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n",
    ],
  ])("%s changes no protocol", async (_name, bytes) => {
    const talk = say(bytes);
    await Promise.race([talk.closed, expect.poll(talk.heard).not.toBe("")]);
    expect(talk.heard()).not.toMatch(/^HTTP\/1\.1 (101|200 Connection)/);
  });

  test("nothing is written into an answer that has begun", async () => {
    gateway.services.orchestrator.readLogs = async function* (_request, { signal }) {
      yield { event: { case: "opened" as const, value: {} } };
      await new Promise((aborted) => signal.addEventListener("abort", aborted));
    };
    const path = "/v1/sandboxes/019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44/logs?follow=true";
    const talk = say(`GET ${path} HTTP/1.1\r\n${authorized}\r\n`);
    await expect.poll(talk.heard).toContain("text/event-stream");
    talk.socket.write("nonsense\r\n\r\n");
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["200"]);
  });

  test("a URL with a host in it leads nowhere else", async () => {
    const talk = say(
      "GET http://127.0.0.1:22/v1/sandboxes HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    );
    await talk.closed;
    expect(statuses(talk.heard())[0]).toMatch(/^4/);
  });

  test("more headers than anybody sends are refused, by number and by size", async () => {
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, "1"]));
    expect(
      faultPaths(await gateway.call("GET", "/v1/sandboxes", undefined, { headers: many })),
    ).toEqual(["headers"]);
    const talk = say(
      `GET /healthz HTTP/1.1\r\nhost: x\r\nx-large: ${"a".repeat(17 * 1024)}\r\n\r\n`,
    );
    await talk.closed;
    expect(talk.heard()).toContain("headers: are too large");
  });
});

describe("clients that are slow", () => {
  /** Goes on to send, a byte now and then, for as long as it may. */
  function trickle({ socket }: Talk, byte = "a") {
    const timer = setInterval(() => socket.writable && socket.write(byte), 50);
    socket.once("close", () => clearInterval(timer));
  }

  test("with their headers are cut off, whatever they still send", async () => {
    const talk = say("GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ", true);
    trickle(talk);
    await talk.closed;
    expect(talk.heard()).toContain("request: did not arrive in time");
  });

  test("with their first byte are cut off", async () => {
    await say("").closed;
  });

  test("with a JSON body are cut off", async () => {
    const talk = say(post("content-length: 100000", "{"), true);
    trickle(talk, " ");
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["400"]);
    expect(talk.heard()).toContain("request: did not arrive in time");
  });

  test("with a body that was refused long before are cut off", async () => {
    const talk = say(
      `POST ${SANDBOXES} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{`,
      true,
    );
    trickle(talk, " ");
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["401"]);
  });

  test.each(["POST /v1/nowhere", "POST /docs", "PUT /v1/volumes/v/files"])(
    "with the body of %s are cut off",
    async (line) => {
      const talk = say(`${line} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n{`, true);
      trickle(talk, " ");
      await talk.closed;
      expect(statuses(talk.heard())[0]).toMatch(/^4/);
    },
  );

  test("whose body is there in time are served after it, on the same connection", async () => {
    const body = JSON.stringify({ image: { type: "oci", reference: "alpine" } });
    const talk = say(post(`content-length: ${body.length}`, body));
    await expect.poll(() => statuses(talk.heard())).toEqual(["200"]);
    talk.socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await talk.closed;
    expect(statuses(talk.heard())).toEqual(["200", "200"]);
  });
});

describe("what answers say to browsers", () => {
  const ALL = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };

  test("the same on every answer, and nothing of what serves it", async () => {
    for (const [method, path] of [
      ["GET", "/v1/sandboxes"],
      ["GET", "/v1/nowhere"],
      ["GET", "/%zz"],
      ["GET", "/healthz"],
      ["PUT", "/v1/sandboxes"],
    ] as const) {
      const { headers } = await gateway.app.inject({ method, url: path });
      expect(headers, path).toMatchObject(ALL);
      expect(Object.keys(headers)).not.toContain("server");
      expect(Object.keys(headers)).not.toContain("x-powered-by");
      // Of TLS that is a proxy's the proxy speaks.
      expect(Object.keys(headers)).not.toContain("strict-transport-security");
    }
  });

  test("the reference runs what is its own, and in no frame", async () => {
    const { headers } = await gateway.app.inject({ url: "/docs" });
    expect(headers["content-security-policy"]).toMatch(
      /default-src 'self'.*frame-ancestors 'none'/,
    );
    expect(headers["content-security-policy"]).not.toContain("default-src 'none'");
    expect(headers["x-frame-options"]).toBe("DENY");
  });
});

describe("names that objects have of their own", () => {
  const polluted = () => Object.keys(Object.prototype).length > 0 || "polluted" in {};
  const NAMES = ["constructor", "prototype", "toString", "hasOwnProperty"];
  const json = (name: string, value: string) =>
    `{"image":{"type":"oci","reference":"alpine"},${value.replaceAll("NAME", JSON.stringify(name))}}`;

  test.each(NAMES)("%s is a label, a variable and a script like any other", async (name) => {
    const body = json(
      name,
      '"labels":{NAME:"l"},"env":[{"key":NAME,"value":"e"}],"runtime":{"scripts":{NAME:"s"}}',
    );
    const { status, body: made } = await gateway.call("POST", SANDBOXES, body);
    expect(status, JSON.stringify(made)).toBe(200);
    expect(Object.entries(made.spec.labels)).toEqual([[name, "l"]]);
    expect(Object.entries(made.spec.runtime.scripts)).toEqual([[name, "s"]]);
    expect(JSON.stringify(made.spec.env)).toContain(`"${name}"`);
    expect(polluted()).toBe(false);
  });

  test("__proto__ is refused where names are the client's, and named", async () => {
    const body = json("__proto__", '"labels":{NAME:"l"},"runtime":{"scripts":{NAME:"s"}}');
    expect(faultPaths(await gateway.call("POST", SANDBOXES, body))).toEqual([
      "labels.__proto__",
      "runtime.scripts.__proto__",
    ]);
  });

  test.each([
    '{"__proto__":{"polluted":true},"image":{"type":"oci","reference":"a"}}',
    '{"constructor":{"prototype":{"polluted":true}},"image":{"type":"oci","reference":"a"}}',
    '{"image":{"type":"oci","reference":"a","__proto__":{"polluted":true}}}',
    '{"image":{"type":"oci","reference":"a"},"resources":{"__proto__":{"polluted":true,"vcpus":9}}}',
    '{"image":{"type":"oci","reference":"a"},"labels":{"__proto__":{"polluted":"x"}}}',
    '{"image":{"type":"oci","reference":"a"},"network":{"__proto__":{"polluted":true}}}',
  ])("%s pollutes nothing", async (body) => {
    const { status } = await gateway.call("POST", SANDBOXES, body);
    expect([200, 400]).toContain(status);
    expect(polluted()).toBe(false);
  });

  test("what only a prototype says is not taken for what was said", async () => {
    const body = '{"__proto__":{"image":{"type":"oci","reference":"alpine"}}}';
    expect(faultPaths(await gateway.call("POST", SANDBOXES, body))).toEqual(["image"]);
  });

  test.each([
    "__proto__[polluted]=1",
    "constructor[prototype][polluted]=1",
    "__proto__=1&limit=5",
    `labels=${encodeURIComponent('{"__proto__":{"polluted":"1"}}')}`,
    `labels=${encodeURIComponent('{"__proto__":"x"}')}`,
  ])("the query %s pollutes nothing", async (query) => {
    const { status } = await gateway.call("GET", `${SANDBOXES}?${query}`);
    expect([200, 400]).toContain(status);
    expect(polluted()).toBe(false);
  });
});
