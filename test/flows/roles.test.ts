import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMPILED } from "../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createDeployment, type Deployment } from "../support/deployment.ts";
import { getFile, pathHeader, putFile } from "../support/files.ts";
import { type Api, apiOf, image } from "../support/program.ts";

// About separate processes alone: how they start, find each other again, and end.

const run = promisify(execFile);
const SLOW = { timeout: 60_000 };

describe("every role in a process of its own", { timeout: 120_000 }, () => {
  let database: TestDatabase;
  let dataDir: string;
  let deployment: Deployment;
  let api: Api;

  beforeAll(async () => {
    database = await createTestDatabase();
    dataDir = await mkdtemp(join(tmpdir(), "sandgate-roles-"));
    deployment = await createDeployment({ databaseUrl: database.url, dataDir });
    api = apiOf(deployment.url, deployment.apiKey);
  });
  afterAll(async () => {
    await deployment.close();
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  });

  const ready = () => expect.poll(deployment.isReady, SLOW).toBe(true);
  const status = async (name: string) =>
    (await api("GET", `/v1/sandboxes/by-name/${name}`)).body.status;
  const startAndWait = (name: string) =>
    api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=30", { ...image(), name });

  test("starts in any order: each waits for what it needs, and says what is missing", async () => {
    const { gateway, organization, sandbox, billing, orchestrators, url } = deployment;
    const answers = (path: string) => fetch(`${url}${path}`).catch(() => undefined);
    gateway.start();
    await expect.poll(async () => (await answers("/healthz"))?.status, SLOW).toBe(200);
    const unready = await answers("/readyz");
    expect(unready?.status).toBe(503);
    expect(await unready?.json()).toMatchObject({
      error: {
        details: {
          checks: { sandbox: false, organization: false, orchestrator: false, billing: false },
        },
      },
    });
    const early = await api("GET", "/v1/sandboxes");
    expect(early).toMatchObject({ status: 503, body: { error: { code: "service_unavailable" } } });
    expect(early.headers.get("retry-after")).toBe("1");
    for (const child of [...orchestrators, sandbox, organization, billing]) child.start();
    await ready();
  });

  test("a life through all of them: create, start, wait, stop, rename, destroy", async () => {
    const made = await startAndWait("life");
    expect(made).toMatchObject({ status: 200, body: { status: "running" } });
    await api("POST", "/v1/sandboxes/by-name/life/stop");
    await expect.poll(() => status("life"), SLOW).toBe("stopped");
    await api("PATCH", `/v1/sandboxes/${made.body.id}`, { name: "second-life" });
    const again = await api("POST", "/v1/sandboxes/by-name/second-life/start?wait_for=running");
    expect(again.body).toMatchObject({ id: made.body.id, status: "running" });
    expect((await api("DELETE", `/v1/sandboxes/${made.body.id}`)).status).toBe(200);
    expect((await api("GET", `/v1/sandboxes/${made.body.id}`)).status).toBe(404);
  });

  test("a volume through all of them: made, filled, read, listed, mounted, counted, deleted", async () => {
    const { url, apiKey } = deployment;
    const [host] = (await api("GET", "/v1/volumes")).body;
    expect(host).toMatchObject({ kind: "host", name: null });
    const made = await api("POST", "/v1/volumes", { name: "shared" });
    expect(made).toMatchObject({ status: 200, body: { status: "active", labels: {} } });
    const { id } = made.body;
    expect((await putFile(api, id, "a/b.txt", "läuft")).status).toBe(200);
    expect(await getFile(url, apiKey, id, "/a/b.txt")).toEqual({ status: 200, text: "läuft" });
    const listed = await api("GET", `/v1/volumes/${id}/files`, undefined, {
      headers: pathHeader("a"),
    });
    expect(listed.body.entries).toMatchObject([{ path: "/a/b.txt", kind: "file", size: 6 }]);
    const mounts = [{ type: "named", name: "shared", guest: "/data" }];
    const mounting = await api("POST", "/v1/sandboxes?start=true&wait_for=running", {
      ...image(),
      name: "mounting",
      mounts,
    });
    expect(mounting.body.status).toBe("running");
    expect(await api("DELETE", `/v1/volumes/${id}`)).toMatchObject({
      status: 409,
      body: { error: { code: "volume_in_use" } },
    });
    const measured = async () => (await api("GET", `/v1/volumes/${id}`)).body.used_bytes;
    await expect.poll(measured, SLOW).toBe(6);
    expect((await api("DELETE", "/v1/sandboxes/by-name/mounting")).status).toBe(200);
    const deleted = () => api("DELETE", `/v1/volumes/${id}`);
    await expect.poll(async () => (await deleted()).status, SLOW).toBe(200);
    expect((await getFile(url, apiKey, id, "a/b.txt")).status).toBe(404);
    expect((await api("GET", "/v1/volumes")).body).toMatchObject([{ id: host.id }]);
    expect((await api("POST", "/v1/volumes", { name: "shared" })).body.id).not.toBe(id);
    const usage = (await api("GET", "/v1/billing/usage/storage")).body;
    expect(usage.rows).toContainEqual(expect.objectContaining({ volume_id: id }));
    expect(usage.volumes.map((volume: { id: string }) => volume.id)).not.toContain(id);
  });

  test("an orchestrator that is killed loses no file, and no write that was not answered leaves half of one", async () => {
    const { url, apiKey, orchestrators } = deployment;
    const { id } = (await api("POST", "/v1/volumes", { name: "kept" })).body;
    expect((await putFile(api, id, "kept", "kept")).status).toBe(200);
    const begun = Promise.withResolvers<void>();
    async function* endless() {
      for (;;) {
        yield new Uint8Array(65_536);
        begun.resolve();
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    }
    const writing = fetch(`${url}/v1/volumes/${id}/files/content`, {
      method: "PUT",
      headers: { authorization: `Bearer ${apiKey}`, ...pathHeader("half") },
      body: ReadableStream.from(endless()),
      duplex: "half",
    }).then(
      ({ status }) => status,
      () => 0,
    );
    await begun.promise;
    await orchestrators[0]?.kill();
    expect([0, 503]).toContain(await writing);
    orchestrators[0]?.start();
    await ready();
    expect(await getFile(url, apiKey, id, "kept")).toEqual({ status: 200, text: "kept" });
    expect((await getFile(url, apiKey, id, "half")).status).toBe(404);
  });

  test.each(["gateway", "sandbox", "organization", "billing", "orchestrator"] as const)(
    "%s is killed: the others find it again, and nothing is lost",
    async (name) => {
      const child = name === "orchestrator" ? deployment.orchestrators[0] : deployment[name];
      const { body } = await startAndWait(`before-${name}`);
      await child?.kill();
      child?.start();
      await ready();
      expect(await status(`before-${name}`)).toBe("running");
      // An orchestrator whose predecessor was killed leads when that one's lease is over.
      const next = async () => (await startAndWait(`after-${name}`)).body.status;
      await expect.poll(next, SLOW).toBe("running");
      expect((await api("POST", `/v1/sandboxes/${body.id}/stop`)).status).toBe(200);
      await expect.poll(() => status(`before-${name}`), SLOW).toBe("stopped");
    },
  );

  test("a wait outlives the sandbox service", async () => {
    const { sandbox, orchestrators } = deployment;
    // Frozen for less than its lease, so that the start is admitted and stays open.
    orchestrators[0]?.signal("SIGSTOP");
    const held = startAndWait("held");
    await expect.poll(() => status("held")).toBe("starting");
    await sandbox.kill();
    orchestrators[0]?.signal("SIGCONT");
    sandbox.start();
    expect((await held).body).toMatchObject({ name: "held", status: "running" });
  });

  test("a create that breaks off half way is 503, and its retry makes one sandbox", async () => {
    const { sandbox } = deployment;
    sandbox.signal("SIGSTOP");
    const broken = api("POST", "/v1/sandboxes", { ...image(), name: "retried" });
    // It is under way when a call sent after it has run out of time.
    const late = await api("GET", "/v1/sandboxes");
    expect([503, 504]).toContain(late.status);
    await sandbox.kill();
    expect([503, 504]).toContain((await broken).status);
    sandbox.start();
    await ready();
    const retried = await api("POST", "/v1/sandboxes", { ...image(), name: "retried" });
    expect(retried.status).toBe(200);
    const twice = await api("POST", "/v1/sandboxes", { ...image(), name: "retried" });
    expect(twice).toMatchObject({
      status: 409,
      body: { error: { details: { sandbox_id: retried.body.id } } },
    });
  });

  test("SIGTERM ends each of them well, with streams and waits still open", async () => {
    const { gateway, sandbox, organization, orchestrators } = deployment;
    orchestrators[0]?.signal("SIGSTOP");
    const held = startAndWait("drained");
    await expect.poll(() => status("drained")).toBe("starting");
    expect(await sandbox.stop()).toBe(0);
    sandbox.start();
    await expect.poll(() => status("drained"), SLOW).toBe("starting");
    const ended = gateway.stop();
    expect((await held).body).toMatchObject({ name: "drained", status: "starting" });
    orchestrators[0]?.signal("SIGCONT");
    const others = [sandbox, organization, ...orchestrators].map((child) => child.stop());
    expect(await Promise.all([ended, ...others])).toEqual([0, 0, 0, 0]);
  });
});

test.each([
  [["sandbox"], { RPC_PORT: "0" }, /DATABASE_URL/],
  [["organization"], { RPC_PORT: "0" }, /DATABASE_URL/],
  [["orchestrator"], { RPC_PORT: "0", SANDBOX_URL: "http://127.0.0.1:1" }, /DATABASE_URL/],
  [["orchestrator"], { RPC_PORT: "0" }, /SANDBOX_URL/],
  [["billing"], { RPC_PORT: "0" }, /SANDBOX_URL/],
  [["billing"], { RPC_PORT: "0", SANDBOX_URL: "http://127.0.0.1:1" }, /DATABASE_URL/],
  [["sandbox"], {}, /RPC_PORT/],
  [["sandbox"], { RPC_PORT: "0", SECRETS_KEY: "" }, /needs SECRETS_KEY/],
  [["organization"], { RPC_PORT: "0", SECRETS_KEY: "" }, /needs SECRETS_KEY/],
  [
    ["orchestrator"],
    { RPC_PORT: "0", SANDBOX_URL: "http://127.0.0.1:1", SECRETS_KEY: "" },
    /needs SECRETS_KEY/,
  ],
  [
    ["gateway"],
    { SANDBOX_URL: "http://127.0.0.1:1" },
    /ORGANIZATION_URL, ORCHESTRATOR_URL, BILLING_URL/,
  ],
  [["--help"], {}, /name one of gateway, sandbox, orchestrator, organization, billing/],
  [["sandbox", "gateway"], {}, /no role "sandbox gateway"/],
])("main.ts %j with %j says in one sentence what it lacks", async (args, env, sentence) => {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-roles-"));
  const { PATH = "" } = process.env;
  const needed = { PATH, DATA_DIR: dataDir, SECRETS_KEY: "5a".repeat(32) };
  const options = { env: { ...needed, ...COMPILED, ...env } };
  const failed = await run(process.execPath, ["main.ts", ...args], options).then(
    () => undefined,
    (error: { code: number; stderr: string }) => error,
  );
  expect(failed?.code).toBe(1);
  expect(failed?.stderr).toMatch(sentence);
  expect(failed?.stderr.trim().split("\n")).toHaveLength(1);
  await rm(dataDir, { recursive: true });
});
