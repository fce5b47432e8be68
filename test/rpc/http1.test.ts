import { createClient } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { fromConnectError } from "../../runtime/rpc/errors.ts";
import { SANDBOX_ID } from "../support/fake-services.ts";
import { CALLER, startServer, TOKEN } from "./support.ts";

const HEADERS = {
  authorization: `Bearer ${TOKEN}`,
  "sandgate-organization-id": CALLER.orgId,
};

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

describe("Connect with JSON over HTTP/1.1", () => {
  test("is answered", async () => {
    const response = await post("GetSandbox", { key: { name: "box" } });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      sandbox: { id: SANDBOX_ID, orgId: CALLER.orgId, name: "box" },
    });
  });

  test("tells the reason of a refusal", async () => {
    const response = await post("GetSandbox", { key: { name: "missing" } });
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({
      code: "not_found",
      message: "resource not found",
      details: [{ type: "google.rpc.ErrorInfo", debug: { reason: "SANDBOX_NOT_FOUND" } }],
    });
  });

  test.each([{}, { authorization: "Bearer wrong" }, { authorization: TOKEN }])(
    "with %j for a token is refused, whatever it asks",
    async (headers) => {
      for (const body of [{ key: { name: "box" } }, { nonsense: 1 }]) {
        const response = await post("GetSandbox", body, headers);
        expect(response.status).toBe(401);
        expect(await response.json()).toEqual({
          code: "unauthenticated",
          message: "unauthenticated",
        });
      }
    },
  );

  test.each([
    ["sandgate-organization-id", "default"],
    ["sandgate-actor", "%7B%22kind%22%3A%22root%22%7D"],
    ["sandgate-actor", "%ZZ"],
  ])("with a malformed %s is refused", async (name, value) => {
    const headers = { ...HEADERS, [name]: value };
    const response = await post("GetSandbox", { key: { name: "box" } }, headers);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ message: expect.stringContaining(name) });
  });

  test("for a path that is no method is not found", async () => {
    expect((await post("Nothing", {})).status).toBe(404);
  });
});

test("gRPC-Web over HTTP/1.1 is answered", async () => {
  const transport = createGrpcWebTransport({ baseUrl: server.url, httpVersion: "1.1" });
  const sandboxes = createClient(SandboxService, transport);
  const request = { key: { key: { case: "name", value: "box" } } } as const;
  const { sandbox } = await sandboxes.getSandbox(request, { headers: HEADERS });
  expect(sandbox?.name).toBe("box");

  const missing = { key: { key: { case: "name", value: "missing" } } } as const;
  const error = await sandboxes.getSandbox(missing, { headers: HEADERS }).catch((e) => e);
  expect(fromConnectError(error)?.reason).toBe("SANDBOX_NOT_FOUND");
});

function post(method: string, body: object, headers: Record<string, string> = HEADERS) {
  return fetch(`${server.url}/sandbox.v1.SandboxService/${method}`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}
