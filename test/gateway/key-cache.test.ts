import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { KeyCache } from "../../gateway/auth/key-cache.ts";
import { generateApiKey, hashApiKey } from "../../runtime/api-key.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { comeTrue } from "../support/come-true.ts";
import { FakeServices, KEY, KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const OTHER_KEY_ID = "019a9f2d-2b1e-7d40-9c3f-000000000002";
const OTHER_ORG_ID = "019a9f2d-11c4-7a0b-8e21-000000000002";

let gateway: Gateway;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  gateway = await openGateway();
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const ask = async (key = KEY) =>
  (
    await gateway.call("GET", "/v1/me/org", undefined, {
      headers: { authorization: `Bearer ${key}` },
    })
  ).status;
const asked = () => gateway.services.keysAsked.length;
const later = (ms: number) => vi.advanceTimersByTime(ms);

async function current(ageMs = 0): Promise<void> {
  await gateway.services.keyWatch.current(ageMs);
  later(1);
}

const refuse = async () => {
  throw new ServiceError("INVALID_API_KEY", "no such key");
};

/** Holds look-ups up until they are told to go on, each with what was true when it began. */
function holdLookUps() {
  const { organization } = gateway.services;
  const held: (() => void)[] = [];
  const truth = { suspended: false };
  organization.authenticateKey = async () => {
    const orgSuspended = truth.suspended;
    await new Promise<void>((resolve) => held.push(resolve));
    return { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key", orgSuspended };
  };
  return { held, truth };
}

describe("while the stream is current", () => {
  test("a good key is not asked for again", async () => {
    await current();
    for (let i = 0; i < 10; i++) {
      expect(await ask()).toBe(200);
      later(600);
      await current();
    }
    expect(asked()).toBe(1);
  });

  test("an unknown key is not asked for again", async () => {
    gateway.services.organization.authenticateKey = refuse;
    await current();
    for (let i = 0; i < 5; i++) {
      expect(await ask()).toBe(401);
      later(600);
      await current();
    }
    expect(asked()).toBe(1);
  });

  test("a key that is revoked stops at once", async () => {
    await current();
    expect(await ask()).toBe(200);
    gateway.services.organization.authenticateKey = refuse;
    await gateway.services.keyWatch.changed(ORG_ID, KEY_ID);
    expect(await ask()).toBe(401);
  });

  test("an organization that is suspended stops at once, and others are not asked for", async () => {
    const holders = new Map([
      [hashApiKey(KEY).toString("hex"), { orgId: ORG_ID, apiKeyId: KEY_ID }],
    ]);
    const suspended = new Set<string>();
    gateway.services.organization.authenticateKey = async ({ keySha256 }) => {
      const other = { orgId: OTHER_ORG_ID, apiKeyId: OTHER_KEY_ID };
      const holder = holders.get(Buffer.from(keySha256).toString("hex")) ?? other;
      return { ...holder, apiKeyName: "a key", orgSuspended: suspended.has(holder.orgId) };
    };
    const other = generateApiKey();
    await current();
    expect([await ask(), await ask(other)]).toEqual([200, 200]);
    suspended.add(ORG_ID);
    await gateway.services.keyWatch.changed(ORG_ID);
    expect([await ask(), await ask(other)]).toEqual([403, 200]);
    expect(asked()).toBe(3);
  });

  test("another key's change leaves a key known", async () => {
    await current();
    await ask();
    await gateway.services.keyWatch.changed(ORG_ID, OTHER_KEY_ID);
    await ask();
    expect(asked()).toBe(1);
  });

  test("a key that was unknown and is made works at once", async () => {
    gateway.services.organization.authenticateKey = refuse;
    await current();
    expect(await ask()).toBe(401);
    delete gateway.services.organization.authenticateKey;
    await gateway.services.keyWatch.changed(ORG_ID, KEY_ID);
    expect(await ask()).toBe(200);
  });
});

describe("what is not vouched for is believed for a second", () => {
  test("when the stream has fallen silent", async () => {
    await current();
    await ask();
    later(699);
    await ask();
    later(301);
    await ask();
    expect(asked()).toBe(2);
  });

  test("when the stream says itself that it is behind", async () => {
    await current();
    await ask();
    later(600);
    await current();
    later(600);
    await current(650);
    await ask();
    expect(asked()).toBe(1);
    later(100);
    await ask();
    expect(asked()).toBe(2);
  });

  test("when the stream has broken off", async () => {
    await current();
    await ask();
    await gateway.services.keyWatch.breakOff();
    later(999);
    await ask();
    expect(asked()).toBe(1);
    later(1);
    await ask();
    expect(asked()).toBe(2);
  });

  test.each([
    ["before the first stream was current", async () => undefined],
    ["before it broke off", () => gateway.services.keyWatch.breakOff()],
    ["before it fell silent", async () => later(700)],
  ])("when it was asked for %s", async (name, lapse) => {
    if (!name.includes("first")) await current();
    await ask();
    await lapse();
    await gateway.services.keyWatch.restore();
    await current();
    await ask();
    expect(asked()).toBe(1);
    later(500);
    await current();
    later(500);
    await ask();
    expect(asked()).toBe(2);
  });

  test("from before it was asked for, however long the answer took", async () => {
    const { held } = holdLookUps();
    const first = ask();
    await comeTrue(() => held.length === 1);
    later(1_000);
    held[0]?.();
    expect(await first).toBe(200);
    const second = ask();
    await comeTrue(() => held.length === 2);
    held[1]?.();
    expect(await second).toBe(200);
  });
});

describe("look-ups under way", () => {
  test("are shared by those who want the same key", async () => {
    const { held } = holdLookUps();
    const all = Array.from({ length: 50 }, () => ask());
    await comeTrue(() => held.length === 1);
    held[0]?.();
    expect(new Set(await Promise.all(all))).toEqual(new Set([200]));
    expect(asked()).toBe(1);
  });

  test.each([
    ["this key", KEY_ID],
    ["its organization", ""],
  ])("are not remembered where a change of %s comes meanwhile", async (_name, apiKeyId) => {
    await current();
    const { held, truth } = holdLookUps();
    const before = ask();
    await comeTrue(() => held.length === 1);
    truth.suspended = true;
    await gateway.services.keyWatch.changed(ORG_ID, apiKeyId);
    const after = ask();
    await comeTrue(() => held.length === 2);
    held[1]?.();
    expect(await after).toBe(403);
    held[0]?.();
    expect(await before).toBe(200);
    expect(await ask()).toBe(403);
    expect(asked()).toBe(2);
  });

  test("that find nobody are not remembered where a key is made meanwhile", async () => {
    await current();
    const answer = Promise.withResolvers<never>();
    gateway.services.organization.authenticateKey = () => answer.promise;
    const before = ask();
    await comeTrue(() => asked() === 1);
    await gateway.services.keyWatch.changed(ORG_ID, KEY_ID);
    answer.reject(new ServiceError("INVALID_API_KEY", "no such key"));
    expect(await before).toBe(401);
    delete gateway.services.organization.authenticateKey;
    expect(await ask()).toBe(200);
  });
});

test("no more keys are remembered than there are places", async () => {
  const services = new FakeServices();
  services.organization.authenticateKey = async ({ keySha256 }) => {
    if (keySha256[0] === 0) throw new ServiceError("INVALID_API_KEY", "no such key");
    const apiKeyId = `key-${keySha256[1]}`;
    return { orgId: ORG_ID, apiKeyId, apiKeyName: "a key" };
  };
  const keys = new KeyCache(services.clients().organizations, 1_000, 2);
  const find = (kind: 0 | 1, n: number) =>
    keys.find(`${kind}${n}`, Buffer.alloc(32).fill(kind, 0, 1).fill(n, 1)).catch(() => undefined);
  for (const kind of [1, 0] as const) {
    services.keysAsked.length = 0;
    for (const n of [1, 2, 3, 3, 2]) await find(kind, n);
    expect(services.keysAsked).toHaveLength(3);
    await find(kind, 1);
    expect(services.keysAsked).toHaveLength(4);
  }
});
