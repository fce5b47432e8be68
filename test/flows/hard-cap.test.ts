import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { callCli } from "../support/cli.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { type Api, apiOf, image } from "../support/program.ts";
import { readDatabase } from "./chaos/facts.ts";
import { metered, unmetered } from "./chaos/invariants/metering.ts";

// A pool that runs out, from outside: every role a process, two of them billing, which are killed all along. In one process there
// would be nobody to kill alone; what the cap does there is in test/services/billing.

const SLOW = { timeout: 110_000, interval: 100 };
const BOXES = ["one", "two", "three", "late"];

let database: TestDatabase;
let dataDir: string;
let deployment: Deployment;
let api: Api;
let killing: ReturnType<typeof keepKilling>;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), "sandgate-cap-"));
  deployment = await createDeployment({
    databaseUrl: database.url,
    dataDir,
    billings: 2,
    env: { POOL_GRACE_SECS: "1" },
  });
  for (const child of deployment.all) child.start();
  api = apiOf(deployment.url, deployment.apiKey);
  while (!(await deployment.isReady())) await sleep(100);
  killing = keepKilling();
}, 120_000);

afterAll(async () => {
  await killing?.stop();
  await deployment?.close();
  await database?.close();
  await rm(dataDir, { recursive: true, force: true });
});

/** Kills the one billing service, then the other, each when its life is a little longer than the last one's, up to what a busy machine needs. */
function keepKilling() {
  let over = false;
  const round = async () => {
    for (let life = 0; !over; life += 1) {
      const child = deployment.billings[life % 2];
      await child?.kill();
      child?.start();
      await sleep(700 * 1.25 ** (life % 12));
    }
  };
  const done = round();
  return {
    stop: async () => {
      over = true;
      await done;
    },
  };
}

const operator = async (...args: string[]) => {
  const env = { DATABASE_URL: database.url, DATA_DIR: dataDir };
  const { code, stderr } = await callCli(env, ...args);
  expect(stderr).toBe("");
  expect(code).toBe(0);
};
const sql = <Row>(text: string) =>
  withClient(database.url, async (client) => (await client.query(text)).rows as Row[]);
const statuses = () =>
  Promise.all(
    BOXES.map(async (name) => (await api("GET", `/v1/sandboxes/by-name/${name}`)).body.status),
  );
const start = (name: string) => api("POST", `/v1/sandboxes/by-name/${name}/start`);

test("a pool runs out: nothing starts, what runs is stopped once; another plan lets it start again", async () => {
  for (const name of BOXES.slice(0, 3))
    await api("POST", "/v1/sandboxes?start=true&wait_for=running", { ...image(), name });
  await api("POST", "/v1/sandboxes", { ...image(), name: "late" });
  await operator("plans", "set", "capped", "--hard-cap", "--limit", "included_vcpu_hours=1");
  await operator("plans", "assign", "default", "capped");
  expect((await start("late")).body).toMatchObject({ status: "starting" });
  // So that an hour is soon over.
  await sql("UPDATE sandbox.runs SET vcpus = 1000");
  await expect.poll(statuses, SLOW).toEqual(BOXES.map(() => "stopped"));

  const [org] = await sql<{ exhaustions: number; stops: string[] }>(`
    SELECT count(*) FILTER (WHERE payload ? 'pool_exhausted')::int AS exhaustions,
           array_agg(actor->>'code' ORDER BY timestamp) FILTER (WHERE event_type = 'sandbox_stop_requested') AS stops
    FROM organization.events`);
  expect(org).toEqual({ exhaustions: 1, stops: Array(4).fill("pool_exhausted") });
  expect(await start("one")).toMatchObject({
    status: 403,
    body: {
      error: {
        code: "quota_exceeded",
        details: { quota: "included_vcpu_hours", limit: 1 },
      },
    },
  });
  const created = await api("POST", "/v1/sandboxes", { ...image(), name: "no-start" });
  expect(created.status).toBe(200);

  await operator("plans", "assign", "default", "unlimited");
  expect((await start("one")).status).toBe(200);
  await operator("plans", "set", "larger", "--hard-cap", "--limit", "included_vcpu_hours=1000000");
  await operator("plans", "assign", "default", "larger");
  await expect.poll(async () => (await start("two")).status, SLOW).toBe(200);
}, 240_000);

test("whatever is killed, every run is rolled up once", async () => {
  for (let i = 0; i < 40; i += 1)
    await api("POST", "/v1/sandboxes?start=true&wait_for=running", {
      ...image(),
      lifecycle: { ephemeral: true, max_duration_secs: 1 },
    });
  const facts = () => readDatabase(database.url);
  const ended = ({ runs }: Awaited<ReturnType<typeof facts>>) =>
    runs.filter(({ closedAt }) => closedAt !== null);
  await expect
    .poll(async () => ended(await facts()).length, SLOW)
    .toBeGreaterThanOrEqual(BOXES.length + 40);
  await expect.poll(async () => unmetered(await facts()), SLOW).toEqual([]);
  await killing.stop();
  expect(metered(await facts())).toEqual([]);
}, 240_000);
