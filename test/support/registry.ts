import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type Docker from "dockerode";

const run = promisify(execFile);

/** Runs until its standard input ends, that is until the tests end, however they end. */
const SCRIPT = `
docker-registry serve "$1/config.yml" &
cat >/dev/null
# Nobody may be reading any more what the shell says of it.
exec 2>/dev/null
kill "$!" && wait "$!"
rm -rf "$1"
`;

/** A registry on loopback, as the Docker daemon sees it. */
export interface TestRegistry {
  /** Such as `127.0.0.1:41234`. */
  host: string;
  username: string;
  password: string;
  /** Pushes a local image as `host/path`, with its credentials. @returns the reference's digest */
  push(docker: Docker, localName: string, path: string): Promise<string>;
  stop(): Promise<void>;
}

/**
 * Starts a docker-registry that wants a password for everything.
 * @param network the namespace that the daemon is in; null: this process's own
 */
export async function startRegistry(network: string | null): Promise<TestRegistry> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-registry-"));
  const [username, password] = ["puller", "correct horse"];
  await writeConfig(dir, username, password);
  const serve = ["sh", "-c", SCRIPT, "sh", dir];
  const [program = "", ...args] = network ? ["nsenter", `--net=${network}`, ...serve] : serve;
  const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
  const ended = once(child, "exit");
  const host = await listeningOn(child.stderr);
  child.stderr.resume();
  const auth = { username, password, serveraddress: host };
  return {
    host,
    username,
    password,
    push: (docker, localName, path) => push(docker, auth, localName, `${host}/${path}`),
    stop: async () => {
      child.stdin.end();
      await ended;
    },
  };
}

async function writeConfig(dir: string, username: string, password: string): Promise<void> {
  const { stdout } = await run("htpasswd", ["-Bbn", username, password]);
  await writeFile(join(dir, "htpasswd"), stdout);
  const config = {
    version: "0.1",
    log: { level: "info", formatter: "json" },
    storage: { filesystem: { rootdirectory: join(dir, "data") }, delete: { enabled: true } },
    http: { addr: "127.0.0.1:0" },
    auth: { htpasswd: { realm: "test", path: join(dir, "htpasswd") } },
  };
  // JSON is YAML.
  await writeFile(join(dir, "config.yml"), JSON.stringify(config));
}

async function listeningOn(log: NodeJS.ReadableStream): Promise<string> {
  let seen = "";
  for await (const line of createInterface({ input: log })) {
    seen += `${line}\n`;
    const address = /listening on (127\.0\.0\.1:\d+)/.exec(line)?.[1];
    if (address) return address;
  }
  throw new Error(`docker-registry did not start:\n${seen}`);
}

async function push(
  docker: Docker,
  auth: Docker.AuthConfigObject,
  localName: string,
  name: string,
): Promise<string> {
  const [repo, tag] = name.split(/:(?=[^/]*$)/);
  await docker.getImage(localName).tag({ repo: repo ?? name, tag: tag ?? "latest" });
  const image = docker.getImage(name);
  const answer = await text(await image.push({ authconfig: auth }));
  const digest = /"Digest":"(sha256:[0-9a-f]+)"/.exec(answer)?.[1];
  if (!digest) throw new Error(`${name} was not pushed: ${answer}`);
  await image.remove({ noprune: true });
  return digest;
}
