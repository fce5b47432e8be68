import type { AddressInfo } from "node:net";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KEY } from "./support/fake-services.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

describe("envelope", () => {
  const cases: [string, string, unknown, Record<string, string>, number, string][] = [
    ["GET", "/nope", undefined, {}, 404, "not_found"],
    ["GET", "/v1/nope", undefined, {}, 404, "not_found"],
    ["GET", "/v1/sandboxes/", undefined, {}, 404, "not_found"],
    ["POST", "/v1/nope", "x", { "content-type": "text/plain" }, 404, "not_found"],
    ["GET", "/%zz", undefined, {}, 400, "invalid_request"],
    ["GET", "/v1/sandboxes/by-name/%ff", undefined, {}, 400, "invalid_request"],
    ["GET", `/v1/sandboxes/by-name/${"a".repeat(5000)}`, undefined, {}, 400, "invalid_request"],
    ["PUT", "/v1/sandboxes", "x", { "content-type": "text/plain" }, 405, "method_not_allowed"],
    ["PROPFIND", "/v1/sandboxes", undefined, {}, 405, "method_not_allowed"],
    ["OPTIONS", "/v1/sandboxes", undefined, {}, 405, "method_not_allowed"],
    ["DELETE", "/healthz", undefined, {}, 405, "method_not_allowed"],
    ["POST", "/v1/sandboxes", "{", {}, 400, "invalid_request"],
    ["POST", "/v1/sandboxes", Buffer.from([0x22, 0xff, 0x22]), {}, 400, "invalid_request"],
    [
      "POST",
      "/v1/sandboxes",
      "{}",
      { "content-type": "text/plain" },
      415,
      "unsupported_media_type",
    ],
    ["POST", "/v1/sandboxes", "{}", { "content-type": "json" }, 415, "unsupported_media_type"],
    ["PATCH", `/v1/sandboxes/${ID}`, " ".repeat(2 ** 20 + 1), {}, 413, "payload_too_large"],
    ["POST", "/v1/sandboxes", " ".repeat(2 ** 25 + 1), {}, 413, "payload_too_large"],
    ["GET", `/v1/sandboxes/${ID}`, undefined, {}, 404, "sandbox_not_found"],
  ];
  test.each(cases)("%s %.40s", async (method, url, body, headers, status, code) => {
    const answer = await gateway.call(method, url, body, { headers });
    expect({ status: answer.status, code: answer.body?.error?.code }).toEqual({ status, code });
    expect(Object.keys(answer.body)).toEqual(["error"]);
    expect(Object.keys(answer.body.error)).toEqual(["code", "message", "details"]);
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
  });

  test("405 names the methods that are allowed", async () => {
    const { headers } = await gateway.call("PUT", `/v1/sandboxes/${ID}`);
    expect(headers.allow?.split(", ").sort()).toEqual(["DELETE", "GET", "HEAD", "PATCH"]);
  });

  test("a body just under the limit of a create is read", async () => {
    const body = `{"image":{"type":"oci","reference":"alpine"}${" ".repeat(2 ** 25 - 100)}}`;
    expect((await gateway.call("POST", "/v1/sandboxes", body)).status).toBe(200);
  });

  test("HEAD answers as GET does, without a body", async () => {
    const answer = await gateway.app.inject({ method: "HEAD", url: "/healthz" });
    expect([answer.statusCode, answer.body]).toEqual([200, ""]);
  });
});

describe("bodies", () => {
  test("JSON with a byte order mark or with parameters in its type is JSON", async () => {
    const body = `\ufeff{"image":{"type":"oci","reference":"alpine"}}`;
    const headers = { "content-type": "application/json; charset=utf-8" };
    expect((await gateway.call("POST", "/v1/sandboxes", body, { headers })).status).toBe(200);
  });

  test.each([["[]"], ["null"], ['"x"'], ["1"]])("a body %s is no object", async (body) => {
    expect(faultPaths(await gateway.call("POST", "/v1/sandboxes", body))[0]).toBe("body");
  });

  test.each([
    ["POST", "/v1/sandboxes"],
    ["PATCH", `/v1/sandboxes/${ID}`],
  ])("%s %s needs a body", async (method, url) => {
    expect(faultPaths(await gateway.call(method, url))).toEqual(["body"]);
    expect(faultPaths(await gateway.call(method, url, ""))).toEqual(["body"]);
  });

  test.each(["start", "stop"])("%s takes no body, an empty one, or {}", async (verb) => {
    for (const body of [undefined, "", "{}"]) {
      const { id } = gateway.services.add();
      const answer = await gateway.call("POST", `/v1/sandboxes/${id}/${verb}`, body);
      expect(answer.status).toBe(200);
    }
  });

  test("an empty body may be of any type", async () => {
    const { id } = gateway.services.add();
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await gateway.call("POST", `/v1/sandboxes/${id}/start`, "", { headers });
    expect(answer.status).toBe(200);
  });

  test.each([
    ["text/plain", "x"],
    ["application/json", "{"],
  ])("what takes no body leaves one of %s unread", async (type, sent) => {
    const { id } = gateway.services.add();
    const headers = { "content-type": type };
    const answer = await gateway.call("DELETE", `/v1/sandboxes/${id}`, sent, { headers });
    expect(answer.status).toBe(200);
  });

  test.each(["start", "stop"])("%s refuses other bodies", async (verb) => {
    const answer = await gateway.call("POST", `/v1/sandboxes/${ID}/${verb}`, "[]");
    expect(faultPaths(answer)).toEqual(["body"]);
  });
});

describe("request ids", () => {
  test.each(["abc-1", "~".repeat(128)])("keeps a sane one: %s", async (id) => {
    const { headers } = await gateway.call("GET", "/v1/me/org", undefined, {
      headers: { "x-request-id": id },
    });
    expect(headers["x-request-id"]).toBe(id);
  });

  test.each(["", "a b", "é", "~".repeat(129)])("replaces another: %s", async (id) => {
    const { headers } = await gateway.call("GET", "/v1/nope", undefined, {
      headers: { "x-request-id": id },
    });
    expect(headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test("travels to the services", async () => {
    await gateway.call("GET", "/v1/sandboxes", undefined, { headers: { "x-request-id": "r-1" } });
    expect(gateway.services.calls.at(-1)?.caller.requestId).toBe("r-1");
  });
});

describe("over a socket", () => {
  let port: number;
  beforeAll(async () => {
    await gateway.app.listen({ port: 0, host: "127.0.0.1" });
    port = (gateway.app.server.address() as AddressInfo).port;
  });

  test.each([
    ["no HTTP", "hello\r\n\r\n"],
    ["an unknown method", "FROBNICATE / HTTP/1.1\r\nhost: x\r\n\r\n"],
    ["headers without end", `GET / HTTP/1.1\r\nhost: x\r\na: ${"b".repeat(20_000)}\r\n\r\n`],
    ["a request without host", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n"],
  ])("%s is answered in the envelope", async (_name, bytes) => {
    const text = await talk(port, bytes);
    const [head = "", body = ""] = text.split("\r\n\r\n");
    expect(head).toMatch(/^HTTP\/1\.1 400 /);
    expect(head).toMatch(/x-request-id: \S+/);
    expect(JSON.parse(body).error.code).toBe("invalid_request");
  });

  test.each([
    ["HTTP/1.0 without host", "GET /healthz HTTP/1.0\r\n\r\n", 200],
    [
      "an expectation that is not known",
      "GET /healthz HTTP/1.1\r\nhost: x\r\nexpect: tea\r\nconnection: close\r\n\r\n",
      200,
    ],
    ["an empty body in chunks", `${post("transfer-encoding: chunked")}0\r\n\r\n`, 404],
    ["a body without type", `${post("content-length: 2")}{}`, 415],
    [
      "a body without type in chunks",
      `${post("transfer-encoding: chunked")}2\r\n{}\r\n0\r\n\r\n`,
      415,
    ],
  ])("%s is answered like others", async (_name, bytes, status) => {
    expect(await talk(port, bytes)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  });
});

describe("readiness", () => {
  test("alive and ready, without a key", async () => {
    const headers = { authorization: "" };
    expect(await gateway.call("GET", "/healthz", undefined, { headers })).toMatchObject({
      status: 200,
      body: { status: "ok" },
    });
    expect(await gateway.call("GET", "/readyz", undefined, { headers })).toMatchObject({
      status: 200,
      body: { status: "ready", checks: { database: true } },
    });
  });
});

/** The head of a start of a sandbox that does not exist. */
function post(header: string): string {
  const start = `POST /v1/sandboxes/${ID}/start HTTP/1.1`;
  const lines = [start, "host: x", `authorization: Bearer ${KEY}`, header, "connection: close"];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** Sends bytes and returns all that comes back. */
function talk(port: number, bytes: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  socket.on("close", () => resolve(text));
  socket.on("error", reject);
  return promise;
}
