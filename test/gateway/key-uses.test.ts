import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { KeyUses } from "../../gateway/auth/key-uses.ts";
import { KEY, KEY_ID } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const OTHER_KEY_ID = "019a9f2d-2b1e-7d40-9c3f-000000000002";
const NOON = Date.parse("2026-11-21T12:00:00Z");

let gateway: Gateway;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"], now: NOON });
  gateway = await openGateway();
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const ask = (key = KEY) =>
  gateway.call("GET", "/v1/me/org", undefined, { headers: { authorization: `Bearer ${key}` } });

test("uses are told every ten seconds, a key once, with its last time", async () => {
  for (const _ of [1, 2, 3]) await ask();
  expect(gateway.services.keyUses).toEqual([]);
  vi.setSystemTime(NOON + 7_000);
  await ask();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(gateway.services.keyUses).toEqual([{ [KEY_ID]: NOON + 7_000 }]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(gateway.services.keyUses).toHaveLength(1);
});

test("the rest is told when the gateway closes", async () => {
  await ask();
  await gateway.close();
  expect(gateway.services.keyUses).toEqual([{ [KEY_ID]: NOON }]);
});

test("a use that was refused is none", async () => {
  const holder = { orgId: "org", apiKeyId: KEY_ID, apiKeyName: "a key" };
  gateway.services.organization.authenticateKey = async () => ({ ...holder, orgSuspended: true });
  expect((await ask()).status).toBe(403);
  await gateway.close();
  expect(gateway.services.keyUses).toEqual([]);
});

test("what could not be told is told the next time, with what came since", async () => {
  const { organization, keyUses } = gateway.services;
  const uses = new KeyUses(gateway.services.clients().organizations, gateway.app.log);
  organization.recordKeyUse = async () => {
    throw new ConnectError("away", Code.Unavailable);
  };
  uses.note(KEY_ID);
  uses.note(OTHER_KEY_ID);
  await uses.tell();
  expect(gateway.logged).toMatchObject([{ msg: "the last uses of keys could not be told yet" }]);
  delete organization.recordKeyUse;
  vi.setSystemTime(NOON + 1_000);
  uses.note(OTHER_KEY_ID);
  await uses.tell();
  expect(keyUses.at(-1)).toEqual({ [KEY_ID]: NOON, [OTHER_KEY_ID]: NOON + 1_000 });
  await uses.tell();
  expect(keyUses).toHaveLength(2);
});

test("many are told in several calls", async () => {
  const uses = new KeyUses(gateway.services.clients().organizations, gateway.app.log);
  for (let i = 0; i < 10_001; i++)
    uses.note(`019a9f2d-2b1e-7d40-9c3f-${String(i).padStart(12, "0")}`);
  await uses.close();
  const told = gateway.services.keyUses.map((use) => Object.keys(use).length);
  expect(told).toEqual([10_000, 1]);
});
