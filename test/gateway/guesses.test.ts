import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { sourceOf } from "../../gateway/auth/client-address.ts";
import { Guesses } from "../../gateway/auth/guesses.ts";
import { unauthorized } from "../../gateway/errors.ts";
import { generateApiKey, hashApiKey } from "../../runtime/api-key.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { comeTrue } from "../support/come-true.ts";
import { KEY, KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const BURST = 20;
const KEY_HASH = hashApiKey(KEY).toString("hex");

let gateway: Gateway;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  await open();
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

/** A gateway that knows KEY alone. */
async function open(given: Parameters<typeof openGateway>[0] = {}): Promise<void> {
  gateway = await openGateway(given);
  gateway.services.organization.authenticateKey = async ({ keySha256 }) => {
    if (Buffer.from(keySha256).toString("hex") !== KEY_HASH)
      throw new ServiceError("INVALID_API_KEY", "no such key");
    return { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" };
  };
}

interface Asked {
  from?: string;
  url?: string;
  method?: string;
  headers?: Record<string, string | undefined>;
}

async function ask(key: string | undefined, { from, url, method, headers }: Asked = {}) {
  return gateway.call(method ?? "GET", url ?? "/v1/me/org", undefined, {
    headers: { authorization: key && `Bearer ${key}`, ...headers },
    ...(from ? { remoteAddress: from } : {}),
  });
}

async function exhaust(given?: Asked): Promise<void> {
  for (let i = 0; i < BURST; i++) expect((await ask(generateApiKey(), given)).status).toBe(401);
}

const statusOf = async (...given: Parameters<typeof ask>) => (await ask(...given)).status;
const asked = () => gateway.services.keysAsked.length;

describe("an address that was wrong too often", () => {
  test("is told to come back, and nothing is looked up for it", async () => {
    await exhaust();
    const answer = await ask(generateApiKey());
    expect(answer).toMatchObject({
      status: 429,
      headers: { "retry-after": "1" },
      body: { error: { code: "rate_limited", message: "too many requests", details: null } },
    });
    expect(answer.headers).not.toHaveProperty("ratelimit-limit");
    // A key that is good, but not known: there is no telling which of the guesses was right.
    expect(await statusOf(KEY)).toBe(429);
    expect(asked()).toBe(BURST);
  });

  test("may be wrong once a second from then on", async () => {
    await exhaust();
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersByTime(1_000);
      expect(await statusOf(generateApiKey())).toBe(401);
      expect(await statusOf(generateApiKey())).toBe(429);
    }
    vi.advanceTimersByTime(1_000);
    expect(await statusOf(KEY)).toBe(200);
  });

  test("may still use a key that is known to be good, also where it has to be asked for again", async () => {
    expect(await statusOf(KEY)).toBe(200);
    await exhaust();
    expect(await statusOf(KEY)).toBe(200);
    vi.advanceTimersByTime(1_000);
    await statusOf(generateApiKey());
    expect(await statusOf(KEY)).toBe(200);
    expect(asked()).toBe(BURST + 3);
  });

  test("is not let in by many requests at once", async () => {
    const keys = Array.from({ length: 60 }, generateApiKey);
    const statuses = await Promise.all(keys.map((key) => statusOf(key)));
    expect(statuses.filter((status) => status === 401)).toHaveLength(BURST);
    expect(statuses.filter((status) => status === 429)).toHaveLength(60 - BURST);
    expect(asked()).toBe(BURST);
  });

  test("is no other address", async () => {
    await exhaust({ from: "192.0.2.1" });
    expect(await statusOf(KEY, { from: "192.0.2.1" })).toBe(429);
    expect(await statusOf(KEY, { from: "192.0.2.2" })).toBe(200);
  });

  test("is a whole network of 64 bits, in IPv6", async () => {
    await exhaust({ from: "2001:db8:1:2::1" });
    expect(await statusOf(KEY, { from: "2001:db8:1:2:ffff:ffff:ffff:ffff" })).toBe(429);
    expect(await statusOf(KEY, { from: "2001:db8:1:3::1" })).toBe(200);
  });
});

describe("what counts", () => {
  test("a key that cannot be anybody's", async () => {
    for (let i = 0; i < BURST; i++) expect(await statusOf("nonsense")).toBe(401);
    expect(await statusOf("nonsense")).toBe(429);
    expect(asked()).toBe(0);
  });

  test("one that nobody has, though that is known", async () => {
    const key = generateApiKey();
    for (let i = 0; i < BURST; i++) expect(await statusOf(key)).toBe(401);
    expect(await statusOf(key)).toBe(429);
    expect(asked()).toBe(1);
  });

  test("one that has expired", async () => {
    const expiresAt = timestampFromMs(Date.now() - 1);
    gateway.services.organization.authenticateKey = async () => ({
      ...{ orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" },
      expiresAt,
    });
    for (let i = 0; i < BURST; i++) expect(await statusOf(KEY)).toBe(401);
    expect(await statusOf(KEY)).toBe(429);
  });

  test("one that is refused by HEAD", async () => {
    for (let i = 0; i < BURST; i++) await ask(generateApiKey(), { method: "HEAD" });
    expect(await statusOf(generateApiKey())).toBe(429);
  });

  test("not: no key at all", async () => {
    for (let i = 0; i < BURST + 5; i++) expect(await statusOf(undefined)).toBe(401);
    expect(await statusOf(KEY)).toBe(200);
  });

  test("not: a key where there is no route, for nobody looks at it there", async () => {
    for (let i = 0; i < BURST + 5; i++) {
      expect(await statusOf(generateApiKey(), { url: "/v1/nothing" })).toBe(404);
      expect(await statusOf(KEY, { url: "/v1/nothing" })).toBe(404);
      expect(await statusOf(KEY, { method: "PUT" })).toBe(405);
      expect(await statusOf(KEY, { url: "/v1/%zz" })).toBe(400);
    }
    expect(asked()).toBe(0);
    expect(await statusOf(KEY)).toBe(200);
  });

  test("not: a good key, however many come at once", async () => {
    const release = Promise.withResolvers<void>();
    gateway.services.organization.authenticateKey = async ({ keySha256 }) => {
      await release.promise;
      const apiKeyId = Buffer.from(keySha256).toString("hex");
      return { orgId: ORG_ID, apiKeyId, apiKeyName: "a key" };
    };
    const statuses = Promise.all(Array.from({ length: 100 }, () => statusOf(generateApiKey())));
    await comeTrue(() => asked() === BURST);
    release.resolve();
    expect(new Set(await statuses)).toEqual(new Set([200]));
    expect(asked()).toBe(100);
  });

  test("not: a service that does not answer", async () => {
    gateway.services.organization.authenticateKey = async () => {
      throw new ServiceError("SERVICE_UNAVAILABLE", "away");
    };
    for (let i = 0; i < BURST + 5; i++) expect(await statusOf(KEY)).toBe(503);
  });
});

describe("X-Forwarded-For", () => {
  const forwardedFor = (address: string) => ({ headers: { "x-forwarded-for": address } });

  test("is not believed of just anybody", async () => {
    await exhaust(forwardedFor("192.0.2.1"));
    expect(await statusOf(KEY, forwardedFor("192.0.2.2"))).toBe(429);
  });

  test("is believed of a trusted proxy, as far as its own word goes", async () => {
    await gateway.close();
    await open({ trustedProxies: ["127.0.0.0/8"] });
    await exhaust(forwardedFor("198.51.100.1, 192.0.2.1"));
    expect(await statusOf(KEY, forwardedFor("198.51.100.2, 192.0.2.1"))).toBe(429);
    expect(await statusOf(KEY, forwardedFor("192.0.2.2"))).toBe(200);
  });
});

test("no more addresses are remembered than there are places", async () => {
  const guesses = new Guesses(1_000, 2);
  const guess = (address: string) =>
    guesses.attempt(
      address,
      () => undefined,
      async () => {
        throw unauthorized();
      },
    );
  const codeOf = (address: string) => guess(address).catch(({ code }) => code);
  for (let i = 0; i < BURST; i++) await codeOf("a");
  expect(await codeOf("a")).toBe("rate_limited");
  for (const address of ["b", "c"]) await codeOf(address);
  expect(await codeOf("a")).toBe("invalid_api_key");
});

test("an attempt whose turn does not come is given up", async () => {
  const guesses = new Guesses(1_000);
  const ends: (() => void)[] = [];
  const hang = () => new Promise<void>((resolve) => ends.push(resolve));
  const attempt = () => guesses.attempt("a", () => undefined, hang);
  const tried = Array.from({ length: BURST }, attempt);
  const waiting = [attempt(), attempt()];
  vi.advanceTimersByTime(1_001);
  ends[0]?.();
  // The first takes the place that is free; the second has waited long enough.
  await expect(waiting[1]).rejects.toMatchObject({ code: "service_unavailable" });
  for (const end of ends) end();
  await Promise.all([...tried, waiting[0]]);
});

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::ffff:c000:201", "192.0.2.1"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["2001:DB8:0:0:1::", "2001:db8:0:0::/64"],
  ["[2001:db8::1]:4711", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["1:2:3:4:5:6:7:8", "1:2:3:4::/64"],
  ["unknown", "10.0.0.1"],
  ["", "10.0.0.1"],
])("%s is counted as %s", (ip, source) => {
  const raw = { socket: { remoteAddress: "10.0.0.1" } } as never;
  expect(sourceOf({ ip, raw })).toBe(source);
});
