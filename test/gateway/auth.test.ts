import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { generateApiKey, hashApiKey } from "../../runtime/api-key.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { KEY, KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Answer, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeEach(async () => {
  gateway = await openGateway();
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const holder = { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" };

const ask = (authorization: string | undefined, url = "/v1/me/org") =>
  gateway.call("GET", url, undefined, { headers: { authorization } });

function expectUnauthorized(answer: Answer): void {
  expect(answer).toMatchObject({
    status: 401,
    headers: { "www-authenticate": "Bearer" },
    body: { error: { code: "invalid_api_key", message: "unauthorized", details: null } },
  });
}

describe("a key is refused unasked", () => {
  const good = generateApiKey();
  const other = good.endsWith("0") ? "1" : "0";
  test.each([
    ["that is missing", undefined],
    ["that is empty", ""],
    ["without scheme", KEY],
    ["of another scheme", `Basic ${KEY}`],
    ["that is only a scheme", "Bearer"],
    ["with a space in it", `Bearer ${KEY} ${KEY}`],
    ["that is too short", "Bearer abc_1"],
    ["with odd characters", `Bearer ${KEY}ä!`],
    ["of ours with a wrong checksum", `Bearer ${good.slice(0, -1)}${other}`],
    ["of ours cut short", `Bearer ${good.slice(0, -1)}`],
  ])("%s", async (_name, authorization) => {
    expectUnauthorized(await ask(authorization));
    expect(gateway.services.keysAsked).toEqual([]);
  });
});

describe("a key is good", () => {
  test.each([
    ["of ours", generateApiKey(), "Bearer "],
    ["of another prefix", KEY, "Bearer "],
    ["with a scheme in lower case", KEY, "bearer "],
  ])("%s", async (_name, key, scheme) => {
    expect((await ask(`${scheme}${key}`)).status).toBe(200);
    expect(gateway.services.keysAsked).toEqual([hashApiKey(key).toString("hex")]);
  });

  test("and names the caller in every call", async () => {
    await ask(`Bearer ${KEY}`, "/v1/sandboxes");
    expect(gateway.services.calls[0]?.caller).toMatchObject({
      orgId: ORG_ID,
      actor: { kind: "api_key", api_key_id: KEY_ID, name: "a key" },
    });
  });
});

describe("what the service says of a key", () => {
  test("unknown: 401, and it is not asked again at once", async () => {
    gateway.services.organization.authenticateKey = async () => {
      throw new ServiceError("INVALID_API_KEY", "no such key");
    };
    for (const _ of [1, 2]) expectUnauthorized(await ask(`Bearer ${KEY}`));
    expect(gateway.services.keysAsked).toHaveLength(1);
  });

  test("expired: 401", async () => {
    const expiresAt = timestampFromMs(Date.now() - 1);
    gateway.services.organization.authenticateKey = async () => ({ ...holder, expiresAt });
    expectUnauthorized(await ask(`Bearer ${KEY}`));
  });

  test("suspended: 403", async () => {
    gateway.services.organization.authenticateKey = async () => ({ ...holder, orgSuspended: true });
    expect(await ask(`Bearer ${KEY}`)).toMatchObject({
      status: 403,
      body: { error: { code: "org_suspended", message: "organization suspended", details: null } },
    });
  });

  test("nothing, for it is away: 503", async () => {
    gateway.services.organization.authenticateKey = async () => {
      throw new ConnectError("away", Code.Unavailable);
    };
    expect((await ask(`Bearer ${KEY}`)).status).toBe(503);
  });

  test("good is believed for a second where nobody tells of changes", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    for (const _ of [1, 2]) await ask(`Bearer ${KEY}`);
    expect(gateway.services.keysAsked).toHaveLength(1);
    vi.advanceTimersByTime(1000);
    await ask(`Bearer ${KEY}`);
    expect(gateway.services.keysAsked).toHaveLength(2);
  });

  test("good is believed no longer than the key lives", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const expiresAt = timestampFromMs(Date.now() + 500);
    gateway.services.organization.authenticateKey = async () => ({ ...holder, expiresAt });
    expect((await ask(`Bearer ${KEY}`)).status).toBe(200);
    vi.advanceTimersByTime(501);
    expectUnauthorized(await ask(`Bearer ${KEY}`));
  });
});

describe("who asks is looked at first", () => {
  const routes = [
    ["POST", "/v1/sandboxes"],
    ["GET", "/v1/sandboxes?limit=0"],
    ["GET", "/v1/sandboxes/no-uuid"],
    ["PATCH", "/v1/sandboxes/no-uuid"],
    ["DELETE", "/v1/sandboxes/no-uuid"],
    ["POST", "/v1/sandboxes/no-uuid/start"],
    ["POST", "/v1/sandboxes/no-uuid/stop"],
    ["GET", "/v1/sandboxes/by-name/x"],
    ["DELETE", "/v1/sandboxes/by-name/x"],
    ["POST", "/v1/sandboxes/by-name/x/start"],
    ["POST", "/v1/sandboxes/by-name/x/stop"],
    ["GET", "/v1/me/org"],
  ] as const;

  test.each(routes)("%s %s", async (method, url) => {
    const headers = { authorization: undefined, "content-type": "text/plain" };
    expectUnauthorized(
      await gateway.call(method, url, method === "GET" ? undefined : "{", { headers }),
    );
  });
});
