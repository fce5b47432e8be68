import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../runtime/postgres/connect.ts";
import { callCli } from "../support/cli.ts";
import { createEmptyDatabase, createTestDatabase } from "../support/database.ts";
import { freePort } from "../support/ports.ts";
import { image, type Program, startProgram } from "../support/program.ts";

let program: Program;
let env: Record<string, string>;

beforeAll(async () => {
  const rpcPort = String(await freePort());
  program = await startProgram({ RPC_PORT: rpcPort });
  env = {
    DATABASE_URL: program.databaseUrl,
    DATA_DIR: program.dataDir,
    PORT: new URL(program.url).port,
    ENGINE: "simulated",
    BILLING_URL: `http://127.0.0.1:${rpcPort}`,
  };
});
afterAll(() => program.close());

/** As `status: what was seen`, by name. */
async function examine(more: Record<string, string> = {}, ...args: string[]) {
  const { code, stdout } = await callCli({ ...env, ...more }, "doctor", "--json", ...args);
  const { ok, checks } = JSON.parse(stdout);
  expect(code).toBe(ok ? 0 : 1);
  for (const { status, mend } of checks)
    expect(typeof mend).toBe(["warn", "fail"].includes(status) ? "string" : "object");
  const found: Record<string, string> = Object.fromEntries(
    checks.map(({ name, status, seen }: Record<string, string>) => [name, `${status}: ${seen}`]),
  );
  return { ok, found, stdout };
}

/** Changes rows of the program's database, and puts them back. */
async function whileRows(change: string, back: string, work: () => Promise<void>): Promise<void> {
  const run = (sql: string) => withClient(program.databaseUrl, (client) => client.query(sql));
  await run(change);
  await work().finally(() => run(back));
}

test("a healthy installation has nothing that fails", async () => {
  const { ok, found } = await examine({}, "--server", env.BILLING_URL ?? "");
  expect(ok).toBe(true);
  expect(found).toMatchObject({
    settings: "ok: all of them can be used",
    "data folder": expect.stringMatching(/^ok/),
    "secret files": expect.stringMatching(/^ok/),
    database: expect.stringMatching(/^ok: postgresql:.*; PostgreSQL \d+/),
    clock: expect.stringMatching(/^ok/),
    migrations: expect.stringMatching(/^ok: all \d+ are applied/),
    organizations: "ok: there are 1, 0 of them suspended",
    keys: "ok: 1 work",
    "default plan": "ok: it is 'unlimited'",
    orchestrator: expect.stringMatching(/^ok: one leads the engine 'simulated'/),
    queue: expect.stringMatching(/^ok/),
    engine: expect.stringMatching(/^warn: ENGINE=simulated/),
    gateway: `ok: ${program.url} lives and can serve`,
    server: expect.stringMatching(/^ok/),
    "billing role": expect.stringMatching(/^ok/),
    redis: expect.stringMatching(/^skip/),
  });
});

test("settings that do not fit are shown all at once, without their values", async () => {
  const { ok, found, stdout } = await examine({ PORT: "secret-x", ENGINE: "secret-y" });
  expect(ok).toBe(false);
  expect(found.settings).toMatch(/^fail: PORT must be .*; ENGINE must be /);
  expect(stdout).not.toContain("secret-");
});

test("what listens nowhere is named, without passwords", async () => {
  const nowhere = `127.0.0.1:${await freePort()}`;
  const { found, stdout } = await examine({
    PORT: String(await freePort()),
    BILLING_URL: `http://${nowhere}`,
    REDIS_URL: `redis://user:PLANTED@${nowhere}`,
    DATABASE_URL: `postgresql://user:PLANTED@${nowhere}/x`,
    ENGINE: "docker",
    DOCKER_HOST: "unix:///nonexistent.sock",
  });
  expect(found).toMatchObject({
    database: expect.stringMatching(/^fail: postgresql:.*cannot be asked/),
    gateway: expect.stringMatching(/^fail: nothing answers/),
    "billing role": expect.stringMatching(/^fail: .*does not answer/),
    redis: expect.stringMatching(/^warn: it does not answer/),
    engine: expect.stringMatching(/^fail: ENGINE=docker, but no Docker at/),
  });
  expect(stdout).not.toContain("PLANTED");
});

test("a token that is not taken is a fault, though health is told to anybody", async () => {
  const { ok, found } = await examine({ SERVICE_TOKEN: "not-the-service-token" });
  expect(ok).toBe(false);
  expect(found["billing role"]).toMatch(/^fail: .* does not take this service token$/);
});

test("where docker has led, no docker is a fault, as it is at a start", async () => {
  const without = { ENGINE: "auto", DOCKER_HOST: "unix:///nonexistent.sock" };
  expect((await examine(without)).found.engine).toMatch(/^warn: no Docker .* nothing really runs/);
  await whileRows(
    `INSERT INTO orchestrator.leases (engine, holder, epoch, expires_at, last_seen_at, features, vcpus, memory_mib)
     SELECT 'docker', holder, epoch, expires_at - interval '1 day', last_seen_at - interval '1 day', features, vcpus, memory_mib
     FROM orchestrator.leases`,
    "DELETE FROM orchestrator.leases WHERE engine = 'docker'",
    async () => {
      expect((await examine(without)).found.engine).toMatch(/^fail: .* sandboxes are there$/);
    },
  );
});

test("what others may read is a fault", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "sandgate-doctor-"));
  const path = join(dataDir, "secrets-key");
  await writeFile(path, "x");
  await chmod(path, 0o644);
  const { found } = await examine({ DATA_DIR: dataDir });
  expect(found["secret files"]).toBe(`fail: others may read ${path}`);
  await rm(dataDir, { recursive: true });
});

test("a key that does not open what is sealed is a fault; the one that does is not shown", async () => {
  const patches = [{ type: "text", path: "/a", content: "x" }];
  await program.api("POST", "/v1/sandboxes", { ...image(), patches });
  const right = await examine();
  expect(right.found["secrets key"]).toBe("ok: it opens what was sealed last");
  const key = (await readFile(join(program.dataDir, "secrets-key"), "utf8")).trim();
  expect(right.stdout).not.toContain(key);
  const wrong = await examine({ SECRETS_KEY: Buffer.alloc(32, 7).toString("base64") });
  expect(wrong.found["secrets key"]).toMatch(/^fail: it does not open/);
});

test("keys that end soon, a plan that is missing, starts without room", async () => {
  await whileRows(
    "UPDATE organization.api_keys SET expires_at = now() + interval '1 day'",
    "UPDATE organization.api_keys SET expires_at = NULL",
    async () => {
      expect((await examine()).found.keys).toMatch(/^warn: of 1 that work 1 expire within 7 days/);
    },
  );
  await whileRows(
    "UPDATE organization.organizations SET suspended_at = now()",
    "UPDATE organization.organizations SET suspended_at = NULL",
    async () => {
      const { found, stdout } = await examine();
      expect(found.keys).toMatch(/^warn: none works: .* are suspended$/);
      expect(stdout).toContain("npm run cli -- organizations resume default");
    },
  );
  await whileRows(
    "UPDATE billing.plans SET is_default = false",
    "UPDATE billing.plans SET is_default = true WHERE name = 'unlimited'",
    async () => {
      expect((await examine()).found["default plan"]).toBe("fail: there is none");
    },
  );
  const huge = { vcpus: 1, memory_mib: 1_024 };
  const made = await program.api("POST", "/v1/sandboxes", { ...image(), resources: huge });
  await whileRows(
    `INSERT INTO sandbox.runs (sandbox_id, generation, org_id, vcpus, memory_mib, ephemeral, desired, phase, admitted_at, waiting_since)
     SELECT id, 99, org_id, 1000000, 1024, false, 'running', 'starting', now(), now() - interval '1 minute'
     FROM sandbox.sandboxes WHERE id = '${made.body.id}'`,
    "DELETE FROM sandbox.runs WHERE generation = 99",
    async () => {
      expect((await examine()).found.queue).toMatch(/^warn: 1 starts wait for room/);
    },
  );
});

describe("a database that is not of this version", () => {
  test("one with nothing in it is looked at, and not migrated", async () => {
    const database = await createEmptyDatabase();
    const { found } = await examine({ DATABASE_URL: database.url });
    expect(found.migrations).toMatch(/^warn: \d+ are not applied/);
    expect((await examine({ DATABASE_URL: database.url })).found).toEqual(
      expect.objectContaining({ migrations: found.migrations }),
    );
    await database.close();
  });

  test("one that is ahead is worth a look, or a fault where this version is too old for it", async () => {
    const database = await createTestDatabase();
    await withClient(database.url, (client) =>
      client.query(
        `INSERT INTO public._prisma_migrations (id, checksum, migration_name, finished_at)
         VALUES ('x', 'x', '29990101000000_later', now())`,
      ),
    );
    const look = async () => (await examine({ DATABASE_URL: database.url })).found.migrations;
    expect(await look()).toMatch(
      /^warn: release \S+ has applied 29990101000000_later, beside which/,
    );
    await withClient(database.url, (client) =>
      client.query("UPDATE public._sandgate_schema SET oldest = '29990101000000_later'"),
    );
    expect(await look()).toMatch(/^fail: This version of Sandgate is too old for the database/);
    await database.close();
  });

  test("one where nobody has ever led says so", async () => {
    const database = await createTestDatabase();
    const { found } = await examine({ DATABASE_URL: database.url });
    expect(found.orchestrator).toMatch(/^skip: none has ever led/);
    expect(found.organizations).toBe("warn: there is none");
    await database.close();
  });
});

test("the folder of volumes has to be there, and to be this installation's", async () => {
  const volumesDir = join(program.dataDir, "volumes");
  const seen = async (more: Record<string, string> = {}) =>
    (await examine(more)).found["volumes folder"];
  expect(await seen()).toMatch(/^skip: .*volumes \(VOLUMES_DIR\) does not exist yet/);
  const mark = "019a7c1e-0000-7000-8000-0000000000aa";
  const set = (value: string) => `UPDATE orchestrator.installation SET volumes_mark = ${value}`;
  await whileRows(set(`'${mark}'`), set("NULL"), async () => {
    expect(await seen()).toMatch(/^fail: .* is not the folder .*: it does not exist$/);
    await mkdir(volumesDir);
    expect(await seen()).toMatch(/^fail: .* is not the folder .*: it bears no mark$/);
    await writeFile(join(volumesDir, ".sandgate-volumes"), `${mark}\n`);
    const { found } = await examine();
    expect(found["volumes folder"]).toBe(
      `ok: ${volumesDir} can be read and written, and is this installation's`,
    );
    expect(found["volumes' disk space"]).toMatch(/GiB are free/);
    await writeFile(join(volumesDir, ".sandgate-volumes"), "another\n");
    expect(await seen()).toMatch(/^fail: .*: it bears the mark of another one$/);
  });
  await rm(volumesDir, { recursive: true });
});
