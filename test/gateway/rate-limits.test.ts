import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { MemoryBuckets } from "../../gateway/limits/memory-buckets.ts";
import { generateApiKey, hashApiKey } from "../../runtime/api-key.ts";
import { KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Answer, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await gateway.close();
});

const NAMES = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
const limitsOf = ({ headers }: Answer) =>
  NAMES.map((name) => (headers[name] === undefined ? undefined : Number(headers[name])));

async function openLimited(perSecond: number, burst: number): Promise<void> {
  gateway = await openGateway({ rateLimit: { perSecond, burst, redisUrl: undefined } });
}
const ask = (method = "GET", url = "/v1/me/org", body?: unknown) => gateway.call(method, url, body);

describe("a key", () => {
  test("is told what it has left, and when all of it is back", async () => {
    await openLimited(2, 5);
    expect(limitsOf(await ask())).toEqual([5, 4, 1]);
    expect(limitsOf(await ask())).toEqual([5, 3, 1]);
    expect(limitsOf(await ask())).toEqual([5, 2, 2]);
    vi.advanceTimersByTime(1_000);
    expect(limitsOf(await ask())).toEqual([5, 3, 1]);
    vi.advanceTimersByTime(60_000);
    expect(limitsOf(await ask())).toEqual([5, 4, 1]);
  });

  test("that asks too often is told when to come back, and nothing happens", async () => {
    await openLimited(1, 3);
    for (let i = 0; i < 3; i++) expect((await ask()).status).toBe(200);
    for (let i = 0; i < 3; i++) {
      const answer = await ask("POST", "/v1/sandboxes", { image: { type: "oci", reference: "a" } });
      expect(answer).toMatchObject({
        status: 429,
        headers: { "retry-after": "1" },
        body: { error: { code: "rate_limited", message: "too many requests", details: null } },
      });
      expect(limitsOf(answer)).toEqual([3, 0, 3]);
    }
    expect(gateway.services.calls).toEqual([]);
    vi.advanceTimersByTime(1_000);
    expect((await ask()).status).toBe(200);
    expect((await ask()).status).toBe(429);
  });

  test("waits for as long as it takes", async () => {
    await openLimited(1, 1);
    await ask();
    vi.advanceTimersByTime(999);
    expect(await ask()).toMatchObject({ status: 429, headers: { "retry-after": "1" } });
    vi.advanceTimersByTime(1);
    expect((await ask()).status).toBe(200);
  });

  test("has all of its burst, whatever the rate", async () => {
    for (const rate of [3, 7, 1_000, 333_333]) {
      await openLimited(rate, 200);
      const answers = await Promise.all(Array.from({ length: 250 }, () => ask()));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(200);
      await gateway.close();
    }
  });

  test("does not count for another one", async () => {
    await openLimited(1, 1);
    gateway.services.organization.authenticateKey = async ({ keySha256 }) => {
      const apiKeyId = Buffer.from(keySha256).toString("hex");
      return { orgId: ORG_ID, apiKeyId, apiKeyName: "a key" };
    };
    const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
    const statusOf = async (key: string) =>
      (await gateway.call("GET", "/v1/me/org", undefined, as(key))).status;
    const [one, other] = [generateApiKey(), generateApiKey()];
    expect(hashApiKey(one)).not.toEqual(hashApiKey(other));
    expect([await statusOf(one), await statusOf(one), await statusOf(other)]).toEqual([
      200, 429, 200,
    ]);
  });
});

describe("every answer to a key that is good says what is left", () => {
  const large = JSON.stringify({ name: "x".repeat(2 ** 21) });
  test.each([
    [200, "GET", "/v1/sandboxes", undefined, {}],
    [400, "GET", "/v1/sandboxes?limit=0", undefined, {}],
    [400, "POST", "/v1/sandboxes", "{", {}],
    [404, "GET", "/v1/sandboxes/019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44", undefined, {}],
    [413, "PATCH", "/v1/sandboxes/019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44", large, {}],
    [415, "POST", "/v1/sandboxes", "a=b", { "content-type": "text/plain" }],
  ])("%i to %s %s", async (status, method, url, body, headers) => {
    await openLimited(1, 10);
    const answer = await gateway.call(method, url, body, { headers });
    expect(answer.status).toBe(status);
    expect(limitsOf(answer)).toEqual([10, 9, 1]);
  });

  test("500", async () => {
    await openLimited(1, 10);
    gateway.services.sandbox.listSandboxes = async () => {
      throw new Error("a bug");
    };
    const answer = await ask("GET", "/v1/sandboxes");
    expect([answer.status, ...limitsOf(answer)]).toEqual([500, 10, 9, 1]);
  });

  test("403, to a suspended organization", async () => {
    await openLimited(1, 10);
    const holder = { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" };
    gateway.services.organization.authenticateKey = async () => ({ ...holder, orgSuspended: true });
    const answer = await ask();
    expect([answer.status, ...limitsOf(answer)]).toEqual([403, 10, 9, 1]);
  });

  test("a stream", async () => {
    await openLimited(1, 10);
    const { id } = gateway.services.add();
    const answer = await ask("GET", `/v1/sandboxes/${id}/logs`);
    expect([answer.status, ...limitsOf(answer)]).toEqual([200, 10, 9, 1]);
  });
});

test("without a rate nothing is counted, and nothing said", async () => {
  await openLimited(0, 1);
  for (let i = 0; i < 5; i++) {
    const answer = await ask();
    expect([answer.status, ...limitsOf(answer)]).toEqual([200, undefined, undefined, undefined]);
  }
});

test("no more buckets are kept than there are places", async () => {
  await openLimited(0, 1);
  const buckets = new MemoryBuckets({ burst: 1, intervalMs: 1_000 }, 2);
  const admitted = (name: string) => buckets.take(name).admitted;
  expect([admitted("a"), admitted("a")]).toEqual([true, false]);
  expect([admitted("b"), admitted("c"), admitted("a")]).toEqual([true, true, true]);
});

test("the reference has the headers, and a 429, on every operation that asks for a key", async () => {
  await openLimited(1, 10);
  const { paths } = gateway.contract.document;
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith("/v1/"))
    .flatMap(([, item]) => Object.values(item));
  expect(operations.length).toBeGreaterThan(10);
  for (const { responses } of operations) {
    expect(Object.keys(responses)).toContain("429");
    for (const { headers } of Object.values(responses))
      expect(Object.keys(headers).map((name) => name.toLowerCase())).toEqual(
        expect.arrayContaining(NAMES),
      );
  }
});
