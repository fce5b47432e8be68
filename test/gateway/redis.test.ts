import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { generateApiKey } from "../../runtime/api-key.ts";
import { comeTrue } from "../support/come-true.ts";
import { freePort } from "../support/ports.ts";
import { describeWithRedis, startRedis, type TestRedis } from "../support/redis.ts";
import { KEY_ID, ORG_ID } from "./support/fake-services.ts";
import { type Gateway, openGateway } from "./support/gateway.ts";

const NOTICE = "Redis does not count requests: they pass, whatever the rate limits";
const BUCKET = `sandgate:rate-limit:${KEY_ID}`;
// A token an hour and more: what comes back during a test is nothing.
const SLOW = 1 / 4_000;

const opened: Gateway[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const gateway of opened.splice(0)) await gateway.close();
});

// A machine that is busy must not look like a Redis that is slow.
const PATIENT = { redisPatienceMs: 10_000 };

async function open(
  redisUrl: string,
  burst: number,
  perSecond = SLOW,
  patience: { redisPatienceMs?: number } = PATIENT,
): Promise<Gateway> {
  const gateway = await openGateway({ rateLimit: { perSecond, burst, redisUrl }, ...patience });
  opened.push(gateway);
  return gateway;
}

const ask = (gateway: Gateway) => gateway.call("GET", "/v1/me/org");
const statusOf = async (gateway: Gateway) => (await ask(gateway)).status;
const notices = ({ logged }: Gateway) => logged.filter(({ msg }) => msg === NOTICE);

describeWithRedis("with a Redis", () => {
  let redis: TestRedis;
  beforeEach(async () => {
    redis = await startRedis();
  });
  afterEach(async () => {
    redis.thaw();
    await redis.remove();
  });

  test("several gateways let a burst pass together, and no request more", async () => {
    const gateways = [await open(redis.url, 100), await open(redis.url, 100)];
    const answers = await Promise.all(
      Array.from({ length: 120 }, async (_, i) => ask(gateways[i % 2] as Gateway)),
    );
    const passed = answers.filter(({ status }) => status === 200);
    const refused = answers.filter(({ status }) => status === 429);
    expect([passed.length, refused.length]).toEqual([100, 20]);
    const left = passed.map(({ headers }) => Number(headers["ratelimit-remaining"]));
    expect(left.sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    for (const { headers } of refused) {
      expect(headers).toMatchObject({ "ratelimit-limit": "100", "ratelimit-remaining": "0" });
      expect(Number(headers["retry-after"])).toBeGreaterThan(3_900);
      expect(Number(headers["retry-after"])).toBeLessThanOrEqual(4_000);
      expect(Number(headers["ratelimit-reset"])).toBeLessThanOrEqual(400_000);
    }
  });

  test("tokens come back, and a bucket that is full again is nowhere", async () => {
    const gateway = await open(redis.url, 2, 20);
    expect(await ask(gateway)).toMatchObject({
      status: 200,
      headers: { "ratelimit-limit": "2", "ratelimit-remaining": "1", "ratelimit-reset": "1" },
    });
    await expect.poll(() => redis.send(`EXISTS ${BUCKET}`)).toBe(":0");
    expect(await ask(gateway)).toMatchObject({ headers: { "ratelimit-remaining": "1" } });
  });

  test("each key has a bucket of its own", async () => {
    const gateway = await open(redis.url, 1);
    gateway.services.organization.authenticateKey = async ({ keySha256 }) => {
      const apiKeyId = Buffer.from(keySha256).toString("hex");
      return { orgId: ORG_ID, apiKeyId, apiKeyName: "a key" };
    };
    const [one, other] = [generateApiKey(), generateApiKey()];
    const as = async (key: string) => {
      const headers = { authorization: `Bearer ${key}` };
      return (await gateway.call("GET", "/v1/me/org", undefined, { headers })).status;
    };
    expect([await as(one), await as(one), await as(other)]).toEqual([200, 429, 200]);
  });

  test("a bucket that could not be of a clock that goes forward is full at the latest after its time", async () => {
    const gateway = await open(redis.url, 2);
    await redis.send(`SET ${BUCKET} 1e300`);
    const answer = await ask(gateway);
    expect(answer.status).toBe(429);
    expect(Number(answer.headers["ratelimit-reset"])).toBeLessThanOrEqual(8_000);
  });

  test("when it is killed requests pass, the log says so once, and when it is back they are counted", async () => {
    const gateway = await open(redis.url, 1);
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
    await redis.kill();
    await expect.poll(() => statusOf(gateway)).toBe(200);
    for (let i = 0; i < 20; i++) {
      const answer = await ask(gateway);
      expect(answer.status).toBe(200);
      expect(answer.headers).not.toHaveProperty("ratelimit-limit");
    }
    expect(notices(gateway)).toHaveLength(1);
    await redis.start();
    await expect.poll(() => statusOf(gateway), { timeout: 10_000 }).toBe(429);
    expect(notices(gateway)).toHaveLength(1);
  });

  test("when it is frozen requests pass, and when it goes on they are counted", async () => {
    const gateway = await open(redis.url, 1, SLOW, {});
    await expect.poll(() => statusOf(gateway)).toBe(429);
    redis.freeze();
    const statuses = await Promise.all(Array.from({ length: 50 }, () => statusOf(gateway)));
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(notices(gateway)).toHaveLength(1);
    redis.thaw();
    await expect.poll(() => statusOf(gateway), { timeout: 10_000 }).toBe(429);
  });

  test("when it has forgotten the script it is told again", async () => {
    const gateway = await open(redis.url, 1);
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
    expect(await redis.send("SCRIPT FLUSH")).toBe("+OK");
    expect(await statusOf(gateway)).toBe(429);
  });

  test("when something else is where a bucket should be its requests pass", async () => {
    const gateway = await open(redis.url, 1);
    await redis.send(`RPUSH ${BUCKET} nonsense`);
    for (let i = 0; i < 5; i++) expect(await statusOf(gateway)).toBe(200);
    expect(notices(gateway)).toHaveLength(1);
    await redis.send(`DEL ${BUCKET}`);
    expect([await statusOf(gateway), await statusOf(gateway)]).toEqual([200, 429]);
  });

  test("a gateway that began without it finds it", async () => {
    await redis.kill();
    const gateway = await open(redis.url, 1);
    for (let i = 0; i < 5; i++) expect(await statusOf(gateway)).toBe(200);
    expect(notices(gateway)).toHaveLength(1);
    await redis.start();
    await statusOf(gateway);
    await expect.poll(() => statusOf(gateway), { timeout: 10_000 }).toBe(429);
  });

  test("the notice comes again after a minute, and only then", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const gateway = await open(redis.url, 1);
    await redis.send(`RPUSH ${BUCKET} nonsense`);
    for (const [later, said] of [
      [0, 1],
      [59_999, 1],
      [1, 2],
    ] as const) {
      vi.advanceTimersByTime(later);
      await statusOf(gateway);
      expect(notices(gateway)).toHaveLength(said);
    }
  });
});

describe("what answers is no Redis", () => {
  let server: Server;
  const sockets = new Set<Socket>();
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  async function serve(answer: (request: string) => string): Promise<string> {
    server = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.on("data", (data) => socket.write(answer(String(data))));
    });
    const port = await freePort();
    await once(server.listen(port, "127.0.0.1"), "listening");
    return `redis://127.0.0.1:${port}`;
  }

  test.each([
    ["another protocol", () => "HTTP/1.1 400 Bad Request\r\n\r\n"],
    ["the same to everything", () => "+OK\r\n".repeat(3)],
    ["nothing that the script says", () => "*2\r\n:1\r\n:2\r\n"],
    ["errors", () => "-LOADING Redis is loading the dataset in memory\r\n"],
    ["nothing", () => ""],
  ])("but speaks %s", async (_name, answer) => {
    const gateway = await open(await serve(answer), 1, SLOW, {});
    for (let i = 0; i < 5; i++) expect(await statusOf(gateway)).toBe(200);
    await comeTrue(() => notices(gateway).length === 1);
  });
});

test("a URL of Redis that is none is said, and its password is not", async () => {
  const gateway = await open("redis://:hunter2@127.0.0.1:1/no-number", 1);
  expect(await statusOf(gateway)).toBe(200);
  expect(notices(gateway)).toHaveLength(1);
  expect(JSON.stringify(gateway.logged)).not.toContain("hunter2");
});
