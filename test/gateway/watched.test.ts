import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KEY } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway({ logRequests: true });
});
afterEach(() => gateway.close());

const ID = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";

async function counted(name: string): Promise<string[]> {
  const lines = (await gateway.metrics.text()).split("\n");
  return lines.filter((line) => line.startsWith(`sandgate_${name}`));
}

test("requests are counted by their route's pattern, never by their path", async () => {
  await gateway.call("GET", `/v1/sandboxes/${ID}?x=1`);
  await gateway.call("GET", `/v1/sandboxes/${ID}`, undefined, { headers: { authorization: "" } });
  await gateway.app.inject(`/v1/nothing/${ID}`);
  await gateway.app.inject({ method: "PUT", url: "/v1/sandboxes" });
  const all = await counted("http_");
  expect(all).toContain(
    'sandgate_http_requests_total{route="/v1/sandboxes/{sandbox_id}",method="GET",code="401"} 1',
  );
  expect(all).toContain(
    'sandgate_http_requests_total{route="unmatched",method="GET",code="404"} 1',
  );
  expect(all).toContain(
    'sandgate_http_requests_total{route="unmatched",method="PUT",code="405"} 1',
  );
  expect(all).toContain(
    'sandgate_http_request_duration_seconds_count{route="/v1/sandboxes/{sandbox_id}",method="GET"} 2',
  );
  expect(all.join("\n")).not.toContain(ID);
});

test("who is refused before anything is looked at is counted by why", async () => {
  await gateway.call("GET", "/v1/sandboxes", undefined, { headers: { authorization: "Bearer x" } });
  expect(await counted("auth_refusals")).toEqual([
    'sandgate_auth_refusals_total{code="invalid_api_key"} 1',
  ]);
});

test("a client that hangs up is counted once, as 499", async () => {
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<never>();
  gateway.services.sandbox.getSandbox = () => {
    asked.resolve();
    return answered.promise;
  };
  await gateway.app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = gateway.app.server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${KEY}` };
  const sent = request({ port, path: `/v1/sandboxes/${ID}`, headers }).on("error", () => {});
  sent.end();
  await asked.promise;
  sent.destroy();
  const line =
    'sandgate_http_requests_total{route="/v1/sandboxes/{sandbox_id}",method="GET",code="499"} 1';
  await expect.poll(() => counted("http_requests")).toContain(line);
  answered.reject(new Error("late"));
  await gateway.app.inject("/healthz");
  expect(await counted("http_requests")).toContain(line);
});

test("with LOG_REQUESTS a line says what was asked by whom, and nothing of what was sent", async () => {
  await gateway.call("GET", `/v1/sandboxes/${ID}?include=secret`, undefined, {
    headers: { "x-request-id": "r-1" },
  });
  await gateway.app.inject("/v1/nothing");
  const ours = ({ msg, route }: Record<string, unknown>) =>
    msg === "request" && route !== "/openapi.json";
  const lines = gateway.logged.filter(ours);
  expect(lines).toMatchObject([
    { request_id: "r-1", method: "GET", route: "/v1/sandboxes/{sandbox_id}" },
    { route: "unmatched", status: 404 },
  ]);
  expect(lines[0]).toHaveProperty("org_id", expect.stringMatching(/^[0-9a-f-]{36}$/));
  expect(lines[0]).toHaveProperty("duration_ms", expect.any(Number));
  expect(lines[1]).not.toHaveProperty("org_id");
  expect(JSON.stringify(lines)).not.toMatch(/secret|sgt_/);
});
