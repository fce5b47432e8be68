import { execFileSync } from "node:child_process";
import { existsSync, globSync } from "node:fs";
import { chown, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isReady } from "../../runtime/postgres/connect.ts";
import { Child } from "./child.ts";
import { comeTrue } from "./come-true.ts";
import { freePort } from "./ports.ts";

/** A server of the system's packages, whose pg_dump fits it; ours has none. */
export interface DebianPostgres {
  url(database: string): string;
  stop(): Promise<void>;
}

/** Where Debian keeps the programs; undefined: they are not installed. */
export function findDebianPostgres(): string | undefined {
  const initdb = globSync("/usr/lib/postgresql/*/bin/initdb").sort().at(-1);
  return initdb && existsSync("/usr/bin/pg_dump") ? dirname(initdb) : undefined;
}

/** @param bin as findDebianPostgres found it; needs root, and its user `postgres` */
export async function startDebianPostgres(bin: string): Promise<DebianPostgres> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-debian-postgres-"));
  const user = await postgresUser();
  await chown(folder, user.uid, user.gid);
  const data = join(folder, "data");
  await mkdir(data);
  await chown(data, user.uid, user.gid);
  const init = ["-D", data, "-U", "sandgate", "--auth=trust", "--encoding=UTF8", "--no-sync"];
  execFileSync(join(bin, "initdb"), init, { ...user, stdio: "pipe", cwd: folder });
  const port = await freePort();
  const settings = ["fsync=off", `unix_socket_directories=${folder}`, "listen_addresses=127.0.0.1"];
  const child = new Child({
    name: "PostgreSQL",
    command: [
      join(bin, "postgres"),
      "-D",
      data,
      "-p",
      `${port}`,
      ...settings.flatMap((s) => ["-c", s]),
    ],
    env: {},
    log: `${folder}.log`,
    user,
  });
  child.start();
  const url = (database: string) => `postgresql://sandgate@127.0.0.1:${port}/${database}`;
  await comeTrue(() => isReady(url("postgres")).catch(() => false));
  const stop = async () => {
    child.signal("SIGINT");
    await comeTrue(() => !child.lives);
    await rm(folder, { recursive: true, force: true });
    await rm(`${folder}.log`, { force: true });
  };
  return { url, stop };
}

async function postgresUser(): Promise<{ uid: number; gid: number }> {
  const passwd = await readFile("/etc/passwd", "utf8");
  const [, , uid, gid] = /^postgres:.*$/m.exec(passwd)?.[0].split(":") ?? [];
  if (uid === undefined || gid === undefined) throw new Error("there is no user postgres");
  return { uid: Number(uid), gid: Number(gid) };
}
