import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Child } from "../support/child.ts";
import { spawnCli } from "../support/cli.ts";
import { processesOf } from "../support/npm-start.ts";
import { freePort } from "../support/ports.ts";
import { apiOf } from "../support/program.ts";

const LIMIT = 60_000;

let parent: string;
let dataDir: string;
let env: Record<string, string>;
let url: string;
let program: Child;

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), "sandgate-cli-"));
  dataDir = join(parent, "data");
  const port = String(await freePort());
  url = `http://127.0.0.1:${port}`;
  env = { DATA_DIR: dataDir, PORT: port, ENGINE: "simulated", LOG_LEVEL: "warn" };
  program = new Child({
    name: "program",
    command: [process.execPath, join(import.meta.dirname, "../../main.ts")],
    env,
    log: join(parent, "program.log"),
  });
});
afterAll(async () => {
  await program.stop();
  await rm(parent, { recursive: true, force: true });
});

/** Until a command has a database of its own. */
const untilTemporary = () =>
  expect
    .poll(() => existsSync(join(dataDir, "postgres", "temporary")), {
      interval: 5,
      timeout: 20_000,
    })
    .toBe(true);

test("doctor works where nothing was ever started, and makes nothing", async () => {
  const ended = await spawnCli(env, "doctor");
  expect(ended.code).toBe(1);
  expect(ended.stdout).toMatch(/^skip +database +there is none yet/m);
  expect(ended.stdout).toMatch(/^fail +gateway +nothing answers at/m);
  expect(existsSync(dataDir)).toBe(false);
});

test(
  "commands at once, where nothing runs: each has the database, none makes a key, no process stays",
  async () => {
    const create = (slug: string) =>
      spawnCli(env, "organizations", "create", "--name", slug, "--slug", slug, "--json");
    const all = await Promise.all(["one", "two", "three"].map(create));
    expect(all.map(({ code, stderr }) => [code, stderr])).toEqual(all.map(() => [0, ""]));
    expect(existsSync(join(dataDir, "api-key"))).toBe(false);
    expect(processesOf(dataDir)).toEqual([]);
    const listed = await spawnCli(env, "organizations", "list", "--json");
    expect(JSON.parse(listed.stdout).data).toHaveLength(3);
    const keys = await spawnCli(env, "keys", "list", "one", "--json");
    expect(JSON.parse(keys.stdout)).toEqual({ data: [] });
  },
  LIMIT,
);
test(
  "the program starts behind a command; both go on while they share its database",
  async () => {
    const before = spawnCli(env, "organizations", "list");
    await untilTemporary();
    program.start();
    expect((await before).code).toBe(0);
    const ready = () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      );
    await expect.poll(ready, { timeout: 30_000 }).toBe(true);
    const made = await spawnCli(env, "keys", "create", "one", "--name", "ci");
    const api = apiOf(url, made.stdout.trim());
    expect((await api("GET", "/v1/me/org")).body).toMatchObject({ slug: "one" });
    const [a, b] = await Promise.all([
      spawnCli(env, "doctor", "--json"),
      spawnCli(env, "organizations", "list"),
    ]);
    expect(JSON.parse(a.stdout)).toMatchObject({ ok: true });
    expect(b.code).toBe(0);
    expect(await ready()).toBe(true);
    expect(await program.stop()).toBe(0);
  },
  LIMIT,
);

test(
  "an interrupted command ends the database that it started",
  async () => {
    const child = new Child({
      name: "command",
      command: [
        process.execPath,
        join(import.meta.dirname, "../../cli.ts"),
        "organizations",
        "list",
      ],
      env,
      log: join(parent, "command.log"),
    });
    child.start();
    await untilTemporary();
    child.signal("SIGINT");
    await expect.poll(() => child.lives, { timeout: 20_000 }).toBe(false);
    expect(processesOf(dataDir)).toEqual([]);
  },
  LIMIT,
);
