import { execFile, execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { appendFile, chown, link, mkdtemp, open, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generateApiKey } from "../../runtime/api-key.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { Child } from "../support/child.ts";
import { spawnCli } from "../support/cli.ts";
import { comeTrue } from "../support/come-true.ts";
import {
  type DebianPostgres,
  findDebianPostgres,
  startDebianPostgres,
} from "../support/debian-postgres.ts";
import { getFile, putFile } from "../support/files.ts";
import { freePort } from "../support/ports.ts";
import { type Api, apiOf, image } from "../support/program.ts";

const run = promisify(execFile);
const MAIN = join(import.meta.dirname, "../../main.ts");
const GIB = 1024 ** 3;
const INLINE = { mode: "inline", username: "somebody", password: "correct horse" };

const bin = findDebianPostgres();
const why =
  (bin === undefined && "PostgreSQL's packages are not installed") ||
  (process.getuid?.() !== 0 && "only root can read and give owners");
if (why && process.env.CI) throw new Error(`the test of backup and restore cannot run: ${why}`);

describe.skipIf(why)(`backup and restore${why ? ` [skipped: ${why}]` : ""}`, () => {
  const apiKey = generateApiKey();
  const secretsKey = randomBytes(32).toString("base64");
  let postgres: DebianPostgres;
  let folder: string;
  let url: string;
  let api: Api;

  beforeAll(async () => {
    postgres = await startDebianPostgres(bin ?? "");
    folder = await mkdtemp(join(tmpdir(), "sandgate-backup-"));
    url = `http://127.0.0.1:${await freePort()}`;
    api = apiOf(url, apiKey);
  });

  afterAll(async () => {
    await postgres?.stop();
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  /** Of the program, and of the scripts. */
  const settings = (database: string, volumes: string) => ({
    DATABASE_URL: postgres.url(database),
    VOLUMES_DIR: join(folder, volumes),
    DATA_DIR: join(folder, "data"),
    SECRETS_KEY: secretsKey,
    BOOTSTRAP_API_KEY: apiKey,
    SERVICE_TOKEN: "0123456789abcdef0123456789abcdef",
    ENGINE: "simulated",
    PORT: new URL(url).port,
    LOG_LEVEL: "warn",
  });

  const createDatabase = (name: string) =>
    withClient(postgres.url("postgres"), (client) => client.query(`CREATE DATABASE ${name}`));

  async function startProgram(env: Record<string, string>): Promise<Child> {
    const log = join(folder, "log");
    const program = new Child({ name: "main", command: [process.execPath, MAIN], env, log });
    program.start();
    await expect
      .poll(
        () =>
          fetch(`${url}/readyz`).then(
            (r) => r.status,
            () => 0,
          ),
        { timeout: 60_000 },
      )
      .toBe(200);
    return program;
  }

  function script(name: string, target: string, env: Record<string, string>) {
    const { PATH = "" } = process.env;
    return run("sh", [`deploy/backup/${name}.sh`, join(folder, target)], { env: { PATH, ...env } });
  }

  async function made(path: string, body: unknown) {
    const answer = await api("POST", path, body);
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
    return answer.body;
  }

  /** As a sandbox may leave it: links, holes, owners, attributes. */
  async function workInside(files: string): Promise<void> {
    await appendFile(join(files, "one"), "twice the same");
    await link(join(files, "one"), join(files, "other"));
    await chown(join(files, "one"), 1234, 4321);
    const sparse = await open(join(files, "sparse"), "w");
    await sparse.truncate(GIB);
    await sparse.close();
    execFileSync("setfattr", ["-n", "user.note", "-v", "kept", join(files, "one")]);
  }

  async function filesOf(volumes: string, volumeId: string): Promise<string> {
    const [org = ""] = (await readdir(join(folder, volumes))).filter(
      (name) => !name.startsWith("."),
    );
    return join(folder, volumes, org, volumeId, "files");
  }

  /** Of a sandbox that has ended: final, to the millisecond. */
  async function usageOf(sandboxId: string): Promise<unknown[]> {
    const { body } = await api("GET", "/v1/billing/usage/sandbox");
    return body.rows.filter((row: { sandbox_id: string }) => row.sandbox_id === sandboxId);
  }

  /** Clients that go on until they are told to stop. @returns the names of what they were told was made */
  function load() {
    let going = true;
    const names: string[] = [];
    const work = async (client: number) => {
      for (let i = 0; going; i++) {
        const name = `load-${client}-${i}`;
        const { status, body } = await api("POST", "/v1/volumes", { name });
        if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
        await putFile(api, body.id, "/file", name);
        await api("POST", "/v1/sandboxes?start=true", { name, ...image() });
        names.push(name);
      }
    };
    const ended = Promise.all([work(1), work(2)]);
    return {
      names,
      stop: async () => {
        going = false;
        await ended;
      },
    };
  }

  test("what was there when a backup began is there again, wherever it is restored", async () => {
    await createDatabase("before");
    const before = settings("before", "volumes");
    const program = await startProgram(before);
    const volume = await made("/v1/volumes", { name: "data" });
    expect((await putFile(api, volume.id, "/notes/hello", "hello")).status).toBe(200);
    await workInside(await filesOf("volumes", volume.id));
    const sealed = { name: "sealed", ...image(), registry: INLINE };
    await made("/v1/sandboxes?start=true&wait_for=running", sealed);
    const ended = await made("/v1/sandboxes?start=true&wait_for=running", {
      name: "ended",
      ...image(),
    });
    await made("/v1/sandboxes/by-name/ended/stop", {});
    const stopped = async () => (await api("GET", "/v1/sandboxes/by-name/ended")).body.status;
    await expect.poll(stopped).toBe("stopped");
    const used = await usageOf(ended.id);
    expect(used).toMatchObject([{ vcpu_seconds: expect.any(Number) }]);
    const clients = load();
    await comeTrue(() => clients.names.length > 3);
    const sure = [...clients.names];
    const { total: events } = await countEvents(before.DATABASE_URL);

    await script("backup", "backup", before);
    await clients.stop();
    await program.stop();

    await createDatabase("after");
    await rm(before.VOLUMES_DIR, { recursive: true });
    const after = settings("after", "volumes");
    await script("restore", "backup", after);
    const restored = await startProgram(after);

    const files = await filesOf("volumes", volume.id);
    expect((await getFile(url, apiKey, volume.id, "/notes/hello")).text).toBe("hello");
    const one = await stat(join(files, "one"));
    expect(one).toMatchObject({ uid: 1234, gid: 4321, nlink: 2 });
    expect((await stat(join(files, "other"))).ino).toBe(one.ino);
    const sparse = await stat(join(files, "sparse"));
    expect(sparse.size).toBe(GIB);
    expect(sparse.blocks).toBeLessThan(100);
    const note = ["--only-values", "-n", "user.note", join(files, "one")];
    expect(execFileSync("getfattr", note, { encoding: "utf8", stdio: "pipe" })).toBe("kept");

    for (const name of sure)
      expect((await api("GET", `/v1/sandboxes/by-name/${name}`)).status).toBe(200);
    const volumes = (await api("GET", "/v1/volumes")).body as { id: string; name: string }[];
    for (const name of sure) {
      const found = volumes.find((one) => one.name === name);
      expect((await getFile(url, apiKey, found?.id ?? "", "/file")).text).toBe(name);
    }
    expect((await countEvents(after.DATABASE_URL)).total).toBeGreaterThanOrEqual(events);
    expect(await usageOf(ended.id)).toEqual(used);

    // The orchestrator takes up what was going on when the snapshot was taken.
    const status = async (name: string) =>
      (await api("GET", `/v1/sandboxes/by-name/${name}`)).body.status;
    for (const name of sure) await expect.poll(() => status(name)).toBe("running");
    await made("/v1/sandboxes/by-name/sealed/stop", {});
    await expect.poll(() => status("sealed")).toBe("stopped");
    await made("/v1/sandboxes/by-name/sealed/start?wait_for=running", {});

    const { stdout } = await spawnCli(after, "doctor", "--json");
    const checks = JSON.parse(stdout).checks as { name: string; status: string; seen: string }[];
    expect(checks.find(({ name }) => name === "secrets key")).toMatchObject({
      status: "ok",
      seen: "it opens what was sealed last",
    });
    await restored.stop();
  }, 180_000);

  test("what would be lost or mixed up is refused", async () => {
    const after = settings("after", "volumes");
    await expect(script("backup", "backup", after)).rejects.toThrow("is there already");
    await expect(script("restore", "backup", after)).rejects.toThrow("the database is not empty");
    await createDatabase("third");
    const third = settings("third", "volumes");
    await expect(script("restore", "backup", third)).rejects.toThrow("is not empty");
    await expect(script("restore", "nowhere", third)).rejects.toThrow("no finished backup");
    await appendFile(join(folder, "backup", "database.dump"), "x");
    await expect(script("restore", "backup", third)).rejects.toThrow("the backup is damaged");
  });

  test("a backup that fails leaves nothing that looks like one", async () => {
    const gone = { ...settings("gone", "volumes") };
    await expect(script("backup", "other", gone)).rejects.toThrow("pg_dump failed");
    expect((await readdir(folder)).filter((name) => name.startsWith("other"))).toEqual([]);
  });
});

async function countEvents(databaseUrl: string): Promise<{ total: number }> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ total: number }>(
      "SELECT count(*)::int AS total FROM organization.events",
    );
    return rows[0] ?? { total: 0 };
  });
}
