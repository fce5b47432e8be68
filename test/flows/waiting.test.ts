import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { migrate } from "../../prisma/migrate.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { Child } from "../support/child.ts";
import { createEmptyDatabase, type TestDatabase } from "../support/database.ts";
import { freePort } from "../support/ports.ts";

const MAIN = join(import.meta.dirname, "../../main.ts");
const SLOW = { timeout: 30_000 };
vi.setConfig({ testTimeout: 60_000 });

let dir: string;
let database: TestDatabase;
const children: Child[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "sandgate-waiting-"));
  database = await createEmptyDatabase();
});
afterEach(async () => {
  await Promise.all(children.splice(0).map((child) => child.kill()));
  await database.close();
  await rm(dir, { recursive: true });
});

/** A role that keeps nothing in its folder, which cannot be made. */
async function start(role: string, env: Record<string, string>) {
  const port = String(await freePort());
  const child = new Child({
    name: role,
    command: [process.execPath, MAIN, role],
    env: {
      DATABASE_URL: database.url,
      DATA_DIR: "/proc/sandgate",
      VOLUMES_DIR: join(dir, "volumes"),
      SECRETS_KEY: "5a".repeat(32),
      SERVICE_TOKEN: "a-token-for-tests",
      BOOTSTRAP_API_KEY: "",
      RPC_PORT: "0",
      ADMIN_PORT: port,
      SANDBOX_URL: "http://127.0.0.1:9",
      LOG_LEVEL: "warn",
      ...env,
    },
    log: join(dir, `${role}.log`),
  });
  children.push(child);
  child.start();
  const checks = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined);
    return answer && ((await answer.json()) as { checks: Record<string, boolean> }).checks;
  };
  return { child, checks };
}

test("a role waits for a database, says so, and ends at once when told to", async () => {
  const url = new URL(database.url);
  const stopped = new URL(url);
  stopped.host = `127.0.0.1:${await freePort()}`;
  const missing = new URL(url);
  missing.pathname = "/not_made_yet";
  for (const [role, at] of [
    ["billing", stopped],
    ["sandbox", missing],
  ] as const) {
    const { child, checks } = await start(role, { DATABASE_URL: at.href });
    await expect.poll(checks, SLOW).toEqual({ database: false, schema: false, running: true });
    await expect.poll(() => child.output(), SLOW).toContain("waiting for the database");
    expect(await child.stop()).toBe(0);
  }
});

test("with MIGRATE=off roles wait for the schema; nothing is kept where nothing need be", async () => {
  const env = { MIGRATE: "off" };
  const roles = [await start("sandbox", env), await start("billing", env)];
  for (const { checks } of roles)
    await expect.poll(checks, SLOW).toEqual({ database: true, schema: false, running: true });
  await migrate(database.url);
  for (const { checks } of roles)
    await expect.poll(checks, SLOW).toEqual({ database: true, schema: true, running: true });
  expect(existsSync("/proc/sandgate")).toBe(false);
});

test("an orchestrator waits for its engine", async () => {
  const socket = `unix://${join(dir, "docker.sock")}`;
  const { child, checks } = await start("orchestrator", { ENGINE: "docker", DOCKER_HOST: socket });
  const missing = { database: true, schema: true, sandbox: false, engine: false, running: true };
  await expect.poll(checks, SLOW).toEqual(missing);
  await expect.poll(() => child.output(), SLOW).toContain("waiting for the engine");
  expect(await child.stop()).toBe(0);
});

test("a user who may not log in is not waited for", async () => {
  const user = `poor_${Date.now()}`;
  const run = (sql: string) => withClient(database.url, (client) => client.query(sql));
  await run(`CREATE ROLE ${user} NOLOGIN`);
  const url = new URL(database.url);
  url.username = user;
  const { child } = await start("billing", { DATABASE_URL: url.href });
  await expect.poll(() => child.lives, SLOW).toBe(false);
  expect(child.output()).toMatch(/^sandgate: The database .* cannot be reached: .*not permitted/);
  await run(`DROP ROLE ${user}`);
});
