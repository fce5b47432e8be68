import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StartupError } from "../../runtime/errors.ts";
import { checkDatabase, withClient } from "../../runtime/postgres/connect.ts";
import { type PostgresServer, startPostgres } from "../../runtime/postgres/server.ts";

let parent: string;
let folder: string;
const servers: PostgresServer[] = [];
const children: ChildProcess[] = [];

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "sandgate-postgres-"));
  folder = join(parent, "postgres");
});

afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const server of servers.splice(0)) await server.stop();
  await rm(parent, { recursive: true, force: true });
});

async function start(at = folder, onCrash?: (message: string) => void): Promise<PostgresServer> {
  const server = await startPostgres({ folder: at, ...(onCrash && { onCrash }) });
  servers.push(server);
  return server;
}

async function query<Row extends object>(server: PostgresServer, sql: string): Promise<Row[]> {
  return withClient(server.url("sandgate"), async (client) => (await client.query<Row>(sql)).rows);
}

/** Of the server that runs on the folder. */
async function serverPid(): Promise<number> {
  return Number.parseInt(await readFile(join(folder, "data/postmaster.pid"), "utf8"), 10);
}

/** A process that has ended, but that its parent has not asked about, does not count. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout !== "" && !stdout.startsWith("Z");
}

/** Another process that runs a server on the folder; it says when the server is up. */
async function startElsewhere(at = folder): Promise<ChildProcess> {
  const module = new URL("../../runtime/postgres/server.ts", import.meta.url).href;
  const code = `
    import { startPostgres } from ${JSON.stringify(module)};
    await startPostgres({ folder: ${JSON.stringify(at)} });
    console.log("up");
    setInterval(() => {}, 60_000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  await once(child.stdout, "data");
  return child;
}

async function killHard(child: ChildProcess): Promise<void> {
  child.kill("SIGKILL");
  await once(child, "exit");
}

test("keeps what was written, durably, and leaves no process", async () => {
  const first = await start();
  await query(first, "CREATE TABLE t AS SELECT 1 AS n");
  const pid = await serverPid();
  await first.stop();
  expect(isRunning(pid)).toBe(false);
  const second = await start();
  expect(await query(second, "SELECT n FROM t")).toEqual([{ n: 1 }]);
  expect(await query(second, "SHOW fsync")).toEqual([{ fsync: "on" }]);
  expect(await query(second, "SHOW synchronous_commit")).toEqual([{ synchronous_commit: "on" }]);
});

test("listens on no port, and only its user can reach its socket", async () => {
  const server = await start();
  expect(await query(server, "SHOW listen_addresses")).toEqual([{ listen_addresses: "" }]);
  expect((await stat(join(folder, "socket"))).mode & 0o777).toBe(0o700);
});

test("a folder with a path too long for a socket, or with odd characters, serves too", async () => {
  const odd = join(parent, `a b,"c"'d ü ${"x".repeat(100)}`);
  const server = await start(odd);
  const [{ unix_socket_directories: socket = "" } = {}] = await query<Record<string, string>>(
    server,
    "SHOW unix_socket_directories",
  );
  const socketFolder = JSON.parse(socket);
  expect((await stat(socketFolder)).mode & 0o777).toBe(0o700);
  await server.stop();
  expect(existsSync(socketFolder)).toBe(false);
  const odder = await start(join(parent, `a b,"c"'d ü`));
  expect(await query(odder, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
});

test("an interrupted first start does not count", async () => {
  await mkdir(join(folder, "data.new/base"), { recursive: true });
  await writeFile(join(folder, "data.new/PG_VERSION"), "18\n");
  await start();
  expect(await readdir(folder)).not.toContain("data.new");
});

test("a second process on the folder is refused, and harms nothing", async () => {
  const first = await startElsewhere();
  await expect(start()).rejects.toThrow(StartupError);
  await expect(start()).rejects.toThrow(/^Another Sandgate runs on /);
  expect(first.exitCode).toBeNull();
  expect(isRunning(await serverPid())).toBe(true);
});

test("after a SIGKILL of its program, the old server is ended and all is found again", async () => {
  const program = await startElsewhere();
  const left = await serverPid();
  await killHard(program);
  expect(isRunning(left)).toBe(true);
  await start();
  expect(isRunning(left)).toBe(false);
  expect(await serverPid()).not.toBe(left);
});

test("after a SIGKILL of program and server, all is found again", async () => {
  const program = await startElsewhere();
  process.kill(await serverPid(), "SIGKILL");
  await killHard(program);
  const server = await start();
  expect(await query(server, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
});

test("a temporary socket folder that a killed program left is removed", async () => {
  const long = join(parent, "x".repeat(100));
  const program = await startElsewhere(long);
  const lockFile = await readFile(join(long, "data/postmaster.pid"), "utf8");
  const socketFolder = lockFile.split("\n")[4] ?? "";
  await killHard(program);
  await start(long);
  expect(existsSync(socketFolder)).toBe(false);
});

test("a lock file whose number is another process's by now is stale", async () => {
  const first = await start();
  const lockFile = join(folder, "data/postmaster.pid");
  const [, ...rest] = (await readFile(lockFile, "utf8")).split("\n");
  await first.stop();
  await writeFile(lockFile, [String(process.pid), ...rest].join("\n"));
  const second = await start();
  expect(await query(second, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
});

test("tells when the server ends by itself, and not when it is asked to", async () => {
  const crash = Promise.withResolvers<string>();
  await start(folder, crash.resolve);
  process.kill(await serverPid(), "SIGINT");
  expect(await crash.promise).toMatch(/^PostgreSQL ended unexpectedly: /);

  const said: string[] = [];
  const server = await start(join(parent, "other"), (message) => said.push(message));
  await server.stop();
  expect(said).toEqual([]);
});

test("a data folder that PostgreSQL refuses is explained in its words", async () => {
  const server = await start();
  await server.stop();
  await writeFile(join(folder, "data/PG_VERSION"), "9.6\n");
  await expect(start()).rejects.toThrow(/^PostgreSQL did not start: .*incompatible with server/);
});

test.runIf(process.getuid?.() === 0)(
  "as root without user namespaces, it runs as a system user",
  async () => {
    await chmod(parent, 0o755);
    const bin = join(parent, "bin");
    await mkdir(bin);
    for (const name of ["sh", "chown"]) await symlink(`/bin/${name}`, join(bin, name));
    const { PATH } = process.env;
    process.env.PATH = bin;
    try {
      const first = await start();
      expect((await stat(join(folder, "data"))).uid).not.toBe(0);
      await first.stop();
    } finally {
      process.env.PATH = PATH;
    }
    const again = await start();
    expect((await stat(`/proc/${await serverPid()}`)).uid).not.toBe(0);
    expect(await query(again, "SELECT 1 AS n")).toEqual([{ n: 1 }]);
  },
);

test.runIf(process.getuid?.() === 0)(
  "as root with nobody to run as, it says what to do",
  async () => {
    const { PATH } = process.env;
    const bin = join(parent, "bin");
    await mkdir(bin);
    for (const name of ["sh", "chown"]) await symlink(`/bin/${name}`, join(bin, name));
    process.env.PATH = bin;
    try {
      await expect(start()).rejects.toThrow(/start Sandgate as an ordinary user/);
    } finally {
      process.env.PATH = PATH;
    }
    expect((await stat(folder)).uid).toBe(0);
  },
);

test("a database of the operator's is checked", async () => {
  const server = await start();
  await checkDatabase(server.url("sandgate"));
  await expect(checkDatabase(server.url("missing"))).rejects.toThrow(
    'The database at postgresql://localhost/missing (DATABASE_URL) cannot be reached: database "missing" does not exist',
  );
  await expect(checkDatabase("postgresql://me:secret@127.0.0.1:1/x")).rejects.toThrow(
    new StartupError(
      "The database at postgresql://127.0.0.1:1/x (DATABASE_URL) cannot be reached: connection refused",
    ),
  );
});
