import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { callCli } from "../support/cli.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { type Answer, apiOf, image } from "../support/program.ts";

// What two gateways share, which is by nature a matter of separate processes.

const SLOW = { timeout: 30_000, interval: 50 };

let database: TestDatabase;
let dataDir: string;
let deployment: Deployment;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), "sandgate-gateways-"));
  deployment = await createDeployment({ databaseUrl: database.url, dataDir, gateways: 2 });
  for (const child of deployment.all) child.start();
  while (!(await deployment.isReady())) await sleep(100);
}, 120_000);

afterAll(async () => {
  await deployment?.close();
  await database?.close();
  await rm(dataDir, { recursive: true, force: true });
});

const sql = (text: string) => withClient(database.url, (client) => client.query(text));
/** Asks every gateway in turn, all at once. */
const askAll = (times: number, method: string, path: string, key: string, body?: object) =>
  Promise.all(
    Array.from({ length: times }, (_, i) => {
      const url = deployment.urls[i % deployment.urls.length] ?? "";
      const headers = { "idempotency-key": key };
      return apiOf(url, deployment.apiKey)(method, path, body, { headers });
    }),
  );

function expectOne(answers: readonly Answer[]): void {
  const good = answers.filter(({ status }) => status === 200);
  expect(new Set(good.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(good.filter(({ headers }) => !headers.has("idempotent-replayed"))).toHaveLength(1);
  const others = answers.filter(({ status }) => status !== 200);
  for (const { body } of others) expect(body.error.code).toBe("idempotency_in_progress");
}

test.each(["", "&wait_for=running"])(
  "a hundred creates at once through both with one key make one sandbox (start=true%s)",
  async (wait) => {
    const key = randomUUID();
    const name = `box${wait.length}`;
    const body = { ...image(), name };
    expectOne(await askAll(100, "POST", `/v1/sandboxes?start=true${wait}`, key, body));
    const { rows } = await sql(
      `SELECT event_type FROM organization.events WHERE payload->>'name' = '${name}'
       AND event_type IN ('sandbox_created', 'sandbox_started')`,
    );
    expect(rows).toHaveLength(2);
  },
  60_000,
);

test("changes that state refuses to whoever comes second are done once too", async () => {
  const path = "/v1/sandboxes/by-name/box0";
  for (const [method, to] of [
    ["POST", `${path}/stop`],
    ["DELETE", path],
  ] as const)
    expectOne(await askAll(20, method, to, randomUUID()));
}, 60_000);

const operator = async (...args: string[]) => {
  const env = { DATABASE_URL: database.url, DATA_DIR: dataDir };
  const { code, stdout } = await callCli(env, "--json", ...args);
  expect(code).toBe(0);
  return JSON.parse(stdout);
};
const asks = (url: string, key: string) =>
  fetch(`${url}/v1/sandboxes?limit=1`, { headers: { authorization: `Bearer ${key}` } }).then(
    ({ status }) => status,
  );
const HEARS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'NOTIFY%'";

test.each<[string, () => unknown, () => unknown]>([
  ["all is well", () => undefined, () => undefined],
  ["nobody hears of it", () => sql(HEARS), () => undefined],
  [
    "the organization service is frozen",
    () => deployment.organization.signal("SIGSTOP"),
    () => deployment.organization.signal("SIGCONT"),
  ],
  [
    "the organization service is killed",
    () => deployment.organization.kill(),
    () => deployment.organization.start(),
  ],
])(
  "a revoked key stops in both while %s",
  async (_, before, after) => {
    const made = await operator("keys", "create", "default", "--name", "mine");
    for (const url of deployment.urls)
      await expect.poll(() => asks(url, made.secret), SLOW).toBe(200);
    await before();
    await sql(
      `UPDATE organization.api_keys SET revoked_at = clock_timestamp() WHERE id = '${made.id}'`,
    );
    // Nothing is answered with it, though nobody may be there who says why.
    for (const url of deployment.urls)
      await expect.poll(() => asks(url, made.secret), SLOW).not.toBe(200);
    await after();
    for (const url of deployment.urls)
      await expect
        .poll(() => asks(url, made.secret), SLOW)
        .toSatisfy((is) => is === 401 || is === 429);
  },
  90_000,
);

test("a new key is good in both, also one that was tried before it was there", async () => {
  const [{ secret, id }, other] = [
    await operator("keys", "create", "default", "--name", "later"),
    await operator("keys", "create", "default", "--name", "now"),
  ];
  for (const url of deployment.urls)
    await expect.poll(() => asks(url, other.secret), SLOW).toBe(200);
  const set = (to: string) =>
    sql(`UPDATE organization.api_keys SET revoked_at = ${to} WHERE id = '${id}'`);
  await set("clock_timestamp()");
  for (const url of deployment.urls) await expect.poll(() => asks(url, secret), SLOW).toBe(401);
  await set("NULL");
  for (const url of deployment.urls) await expect.poll(() => asks(url, secret), SLOW).toBe(200);
}, 60_000);
