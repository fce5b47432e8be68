import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { type Api, apiOf, image } from "../support/program.ts";

// The gateway watches one sandbox service, what the engine does is reported through another. A wait that is not woken
// sits out its budget, which is longer than any of these tests may take.

const SLOW = { timeout: 30_000 };
const WAIT = "start=true&wait_for=running&wait_timeout=300";
vi.setConfig({ testTimeout: 120_000 });

let database: TestDatabase;
let dataDir: string;
let deployment: Deployment;
let api: Api;

beforeAll(async () => {
  database = await createTestDatabase();
  dataDir = await mkdtemp(join(tmpdir(), "sandgate-two-sandboxes-"));
  deployment = await createDeployment({
    databaseUrl: database.url,
    dataDir,
    sandboxes: 2,
    gateways: 2,
  });
  for (const child of deployment.all) child.start();
  api = apiOf(deployment.url, deployment.apiKey);
});
afterAll(async () => {
  await deployment.close();
  await database.close();
  await rm(dataDir, { recursive: true, force: true });
});

const startAndWait = (name: string) => api("POST", `/v1/sandboxes?${WAIT}`, { ...image(), name });

test("waits are woken by what is changed through another process", async () => {
  await expect.poll(deployment.isReady, { timeout: 90_000 }).toBe(true);
  const names = Array.from({ length: 20 }, (_, i) => `woken-${i}`);
  const answers = await Promise.all(names.map(startAndWait));
  expect(answers.map(({ body }) => body.status)).toEqual(names.map(() => "running"));
});

test("a wait is woken where a process was killed between the commit of its change and the word of it", async () => {
  const [, other] = deployment.sandboxes;
  const [, otherUrl = ""] = deployment.urls;
  deployment.orchestrators[0]?.signal("SIGSTOP");
  const held = startAndWait("untold");
  const status = async () => (await api("GET", "/v1/sandboxes/by-name/untold")).body.status;
  await expect.poll(status, SLOW).toBe("starting");
  const lock = new pg.Client(database.url);
  await lock.connect();
  await lock.query("BEGIN");
  await lock.query("SELECT FROM sandbox.sandboxes WHERE name = 'untold' FOR UPDATE");
  const destroying = apiOf(otherUrl, deployment.apiKey)("DELETE", "/v1/sandboxes/by-name/untold");
  await expect.poll(() => waitingForLocks(database.url), SLOW).toBe(1);
  await other?.kill();
  // The statement goes on without its client.
  await lock.query("COMMIT");
  await lock.end();
  expect((await held).status).toBe(404);
  expect((await destroying).status).toBe(503);
});

function waitingForLocks(url: string): Promise<number | undefined> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ many: number }>(
      `SELECT count(*)::int AS many FROM pg_stat_activity
       WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows[0]?.many;
  });
}
