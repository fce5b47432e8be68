import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { type DelayLine, delayLine } from "../support/delay-line.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { pathHeader } from "../support/files.ts";
import { type Answer, type Api, addOrganization, apiOf, image } from "../support/program.ts";

// One service that is frozen, gone or slow costs its own routes, at once; by nature a matter of separate processes.

const SLOW = { timeout: 60_000 };

describe("one service is away", { timeout: 180_000 }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let deployment: Deployment;
  let line: DelayLine;
  let api: Api;
  let volume: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataDir = await mkdtemp(join(tmpdir(), "sandgate-bounds-"));
    line = await delayLine(() => Number(deployment.rpc.billing.split(":")[1]));
    const env = {
      BILLING_URL: `http://127.0.0.1:${line.port}`,
      RPC_CALLS_MAX: "20",
      DATABASE_POOL: "4",
    };
    deployment = await createDeployment({ databaseUrl: database.url, dataDir, env });
    for (const child of deployment.all) child.start();
    await vi.waitUntil(deployment.isReady, { timeout: 100_000, interval: 100 });
    api = apiOf(deployment.url, deployment.apiKey);
    volume = (await api("POST", "/v1/volumes", { name: "kept" })).body.id;
  }, 120_000);
  afterAll(async () => {
    await deployment.close();
    await line.close();
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  /** A route that needs this service, and organization's word on who asks. */
  const routes: Record<string, () => Promise<Answer>> = {
    sandbox: () => api("GET", "/v1/sandboxes"),
    orchestrator: () =>
      api("GET", `/v1/volumes/${volume}/files`, undefined, { headers: pathHeader("") }),
    billing: () => api("GET", "/v1/billing/usage"),
  };
  const statusOf = async (name: string) => (await routes[name]?.())?.status;
  const childOf = (name: string) => {
    const { sandbox, billing, orchestrators } = deployment;
    const child = { sandbox, billing, orchestrator: orchestrators[0] }[name];
    if (!child) throw new Error(`no ${name}`);
    return child;
  };
  const said = () => deployment.gateway.output();
  const openings = (name: string) =>
    said().split(`the ${name} service does not answer: calls to it fail at once`).length - 1;

  /** Its route is refused by an open breaker, those of the others answer. */
  async function costsItsOwnAlone(name: string, before: number): Promise<void> {
    const opened = async () => {
      await statusOf(name);
      return openings(name);
    };
    await expect.poll(opened, SLOW).toBeGreaterThan(before);
    const refused = await routes[name]?.();
    expect(refused).toMatchObject({
      status: 503,
      body: { error: { code: "service_unavailable" } },
    });
    expect(refused?.headers.get("retry-after")).toBe("1");
    for (const other of Object.keys(routes).filter((one) => one !== name))
      await expect.poll(() => statusOf(other), SLOW).toBe(200);
  }

  const isBack = (name: string) => expect.poll(() => statusOf(name), SLOW).toBe(200);

  test.each(Object.keys(routes))("%s is frozen", async (name) => {
    const before = openings(name);
    childOf(name).signal("SIGSTOP");
    try {
      await costsItsOwnAlone(name, before);
    } finally {
      childOf(name).signal("SIGCONT");
    }
    await isBack(name);
  });

  test.each(Object.keys(routes))("%s is killed", async (name) => {
    const before = openings(name);
    await childOf(name).kill();
    try {
      await costsItsOwnAlone(name, before);
    } finally {
      childOf(name).start();
    }
    await isBack(name);
  });

  test("billing is slower than anybody waits: a flood fails at once where it is too much, and leaves nothing behind", async () => {
    const before = openings("billing");
    line.delay(20_000);
    const flood = await Promise.all(
      Array.from({ length: 200 }, () => api("GET", "/v1/billing/usage")),
    );
    const codes = new Set(flood.map(({ status }) => status));
    expect([...codes].filter((status) => status !== 503 && status !== 504)).toEqual([]);
    expect(flood.filter(({ status }) => status === 503).length).toBeGreaterThanOrEqual(180);
    await costsItsOwnAlone("billing", before);
    line.resume();
    await isBack("billing");
  });

  test("a row that somebody holds stops its own organization, and nobody else's reads", async () => {
    const other = await addOrganization(database.url, deployment.url, "other-bounds");
    expect((await api("POST", "/v1/sandboxes", { ...image(), name: "first" })).status).toBe(200);
    const holder = new pg.Client(database.url);
    await holder.connect();
    try {
      await holder.query("BEGIN; SELECT * FROM sandbox.places FOR UPDATE");
      const stuck = Array.from({ length: 12 }, (_, i) =>
        api("POST", "/v1/sandboxes", { ...image(), name: `stuck-${i}` }),
      );
      for (let i = 0; i < 10; i++)
        expect(await other.api("GET", "/v1/sandboxes")).toMatchObject({ status: 200 });
      const answers = await Promise.all(stuck);
      // A busy machine may need all of a call's time for it.
      for (const { status } of answers) expect([503, 504]).toContain(status);
    } finally {
      await holder.end();
    }
    const again = () => api("POST", "/v1/sandboxes", { ...image(), name: "after" });
    await expect.poll(async () => (await again()).status, SLOW).toBe(200);
  });
});
