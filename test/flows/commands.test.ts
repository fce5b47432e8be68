import { execFile } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, readFile, realpath, rm, stat } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { npmStart, outsideEnv, processesOf, type Started } from "../support/npm-start.ts";

// What the README tells to type: `npm start` is one process.

const run = promisify(execFile);
const NOBODY = 65534;

let parent: string;
let clone: string;

beforeAll(async () => {
  parent = await realpath(await mkdtemp(join(tmpdir(), "sandgate-commands-")));
  // For the test that runs it as somebody else.
  await chmod(parent, 0o755);
  clone = join(parent, "sandgate");
  await run("git", ["clone", "--quiet", ".", clone]);
  // As `npm ci` left it here; .ci/run begins with one.
  await run("cp", ["-al", "node_modules", clone]).catch(() =>
    run("cp", ["-a", "node_modules", clone]),
  );
  await run("npm", ["run", "generate"], { cwd: clone, env: outsideEnv() });
}, 600_000);

afterAll(() => rm(parent, { recursive: true, force: true }));

afterEach(() => {
  killAll(parent);
});

/** Those that have ended meanwhile need no more. */
function killAll(folder: string): void {
  for (const pid of processesOf(folder))
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
}

interface Shown {
  id: string;
  status: string;
}

/** Pastes the line that the program prints. */
async function paste(program: Started): Promise<Shown> {
  const { stdout } = await run("sh", ["-c", await program.curlLine()], { env: outsideEnv() });
  return JSON.parse(stdout);
}

async function get(program: Started, id: string): Promise<Shown> {
  const [origin] = /http:\/\/[^/']+/.exec(await program.curlLine()) ?? [];
  const key = (await readFile(join(clone, "data/api-key"), "utf8")).trim();
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${origin}/v1/sandboxes/${id}`, { headers });
  expect(response.status).toBe(200);
  // The gateway tests check its shape.
  return (await response.json()) as Shown;
}

test("npm start makes a sandbox by the line it prints, and finds it again after every kind of end", async () => {
  const first = npmStart({ cwd: clone });
  const made = await paste(first);
  expect(made.status).toBe("running");
  const key = (await readFile(join(clone, "data/api-key"), "utf8")).trim();
  expect(first.stdout()).toContain(key);
  expect(first.stdout()).toContain("NOTHING REALLY RUNS");
  expect((await stat(join(clone, "data/api-key"))).mode & 0o777).toBe(0o600);
  expect(await first.pressCtrlC()).toBe(0);
  expect(processesOf(clone)).toEqual([]);

  const second = npmStart({ cwd: clone });
  expect(await get(second, made.id)).toEqual(made);
  expect(second.stdout()).not.toContain(key);
  killAll(clone);
  await second.ended;

  const third = npmStart({ cwd: clone });
  expect(await get(third, made.id)).toEqual(made);
  expect(await paste(third)).toMatchObject({ status: "running" });
  // What a supervisor does: to npm alone.
  third.child.kill("SIGTERM");
  await third.ended;
  expect(processesOf(clone)).toEqual([]);
}, 120_000);

test("a Ctrl-C during the first start leaves nothing, and the next start works", async () => {
  const env = { DATA_DIR: join(parent, "interrupted") };
  const first = npmStart({ cwd: clone, env });
  while (!(await exists(env.DATA_DIR))) await new Promise((go) => setTimeout(go, 5));
  await first.pressCtrlC();
  expect(first.stderr()).toBe("");
  expect(processesOf(clone)).toEqual([]);
  const second = npmStart({ cwd: clone, env });
  expect((await paste(second)).status).toBe("running");
  expect(await second.pressCtrlC()).toBe(0);
}, 60_000);

test("a key of one's own is used, and printed nowhere", async () => {
  const BOOTSTRAP_API_KEY = "msb_0123456789abcdef0123";
  const env = { DATA_DIR: join(parent, "own-key"), BOOTSTRAP_API_KEY };
  const program = npmStart({ cwd: clone, env });
  const line = await program.curlLine();
  const { stdout } = await run("sh", ["-c", line], { env: { ...outsideEnv(), BOOTSTRAP_API_KEY } });
  expect(JSON.parse(stdout)).toMatchObject({ status: "running" });
  expect(program.stdout()).not.toContain(BOOTSTRAP_API_KEY);
  await program.pressCtrlC();
}, 60_000);

test.runIf(process.getuid?.() === 0)(
  "npm start works for an ordinary user",
  async () => {
    const home = join(parent, "home");
    await mkdir(home);
    await chown(home, NOBODY, NOBODY);
    const env = { HOME: home, DATA_DIR: join(home, "data") };
    const program = npmStart({ cwd: clone, env, uid: NOBODY });
    expect((await paste(program)).status).toBe("running");
    expect((await stat(join(env.DATA_DIR, "api-key"))).uid).toBe(NOBODY);
    expect(await program.pressCtrlC()).toBe(0);
    expect(processesOf(parent)).toEqual([]);
  },
  60_000,
);

describe("what keeps it from starting is one sentence and exit code 1", () => {
  /** The sentence. */
  async function failure(env: Record<string, string>): Promise<string> {
    const program = npmStart({ cwd: clone, env: { DATA_DIR: join(parent, "failing"), ...env } });
    expect(await program.ended).toBe(1);
    expect(program.stderr()).toMatch(/^sandgate: .*\n$/);
    return program.stderr();
  }

  test("a port in use", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((go) => server.once("listening", go));
    const address = server.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    expect(await failure({ PORT: port })).toContain(
      `The port ${port} on 127.0.0.1 cannot be opened: something else listens there`,
    );
    server.close();
    expect(processesOf(clone)).toEqual([]);
  });

  test("a data folder that another one uses", async () => {
    const env = { DATA_DIR: join(parent, "shared") };
    const first = npmStart({ cwd: clone, env });
    await first.curlLine();
    expect(await failure(env)).toContain("Another Sandgate runs on");
    expect((await paste(first)).status).toBe("running");
    await first.pressCtrlC();
  }, 60_000);

  test.each([
    [
      "a folder that cannot be written",
      { DATA_DIR: "/proc/sandgate" },
      "(DATA_DIR) cannot be written",
    ],
    [
      "a database that is not there",
      { DATABASE_URL: "postgresql://127.0.0.1:1/x" },
      "cannot be reached",
    ],
    ["settings that do not fit", { PORT: "x", ENGINE: "y" }, "PORT must be"],
    [
      "Docker asked for and absent",
      { ENGINE: "docker", DOCKER_HOST: "unix:///nonexistent" },
      "ENGINE=docker, but",
    ],
  ])("%s", async (_, env: Record<string, string>, sentence) => {
    expect(await failure(env)).toContain(sentence);
    expect(processesOf(clone)).toEqual([]);
  });
});

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
