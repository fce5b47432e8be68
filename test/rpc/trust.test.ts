import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startServer, TOKEN } from "./support.ts";

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ tokens: [TOKEN, "the-previous-token"] });
});
afterAll(() => server.close());

const KNOWN = "/sandbox.v1.SandboxService/GetSandbox";

async function ask(path: string, headers: Record<string, string> = {}, method = "POST") {
  const body = method === "GET" ? {} : { body: "{}" };
  const type = { "content-type": "application/json" };
  const response = await fetch(server.url + path, {
    method,
    ...body,
    headers: { ...type, ...headers },
  });
  const { status } = response;
  return { status, type: response.headers.get("content-type"), body: await response.text() };
}

test("a caller without credentials is told the same, whatever it asks for", async () => {
  const known = await ask(KNOWN);
  expect(known.status).toBe(401);
  for (const path of ["/no.such.Service/Call", "/", "/%zz", "/grpc.health.v1.Health/List", KNOWN])
    for (const method of ["POST", "GET", "DELETE"])
      expect(await ask(path, {}, method), `${method} ${path}`).toEqual(known);
  expect((await ask(`${KNOWN}?connect=v1`, { authorization: "Bearer wrong" })).body).toBe(
    known.body,
  );
  expect(server.fake.calls).toEqual([]);
});

test("gRPC-Web callers are told in their own way, with no body", async () => {
  for (const type of ["application/grpc-web", "application/grpc-web+proto"]) {
    const response = await fetch(server.url + KNOWN, {
      method: "POST",
      headers: { "content-type": type },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get("grpc-status")).toBe("16");
    expect(await response.text()).toBe("");
  }
});

test("a caller without credentials is answered before its body is there", async () => {
  const socket = connect(server.port, "127.0.0.1");
  const type = "content-type: application/json\r\ncontent-length: 1000000";
  socket.write(`POST ${KNOWN} HTTP/1.1\r\nhost: x\r\n${type}\r\n\r\n`);
  const answer = await new Promise((resolve) => socket.once("data", resolve));
  socket.destroy();
  expect(String(answer)).toMatch(/^HTTP\/1\.1 401 /);
});

test("each of several tokens is taken, which lets one take the place of another", async () => {
  for (const token of [TOKEN, "the-previous-token"])
    expect((await ask(KNOWN, { authorization: `Bearer ${token}` })).status).not.toBe(401);
  for (const token of ["the-next-token", "", `${TOKEN} `.repeat(2)])
    expect((await ask(KNOWN, { authorization: `Bearer ${token}` })).status).toBe(401);
});

test("what anybody may ask is small: more is not read", async () => {
  const ask = async (padding: number) => {
    const response = await fetch(`${server.url}/grpc.health.v1.Health/Check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ service: "", "": " ".repeat(padding) }),
    });
    return response.json();
  };
  expect(await ask(5_000)).toMatchObject({ code: "resource_exhausted" });
  expect(await ask(100)).toEqual({ status: "SERVING" });
});
