import { type ChildProcess, spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { StartupError } from "../errors.ts";
import { lastLine, plainEnv } from "./cluster.ts";
import { isReady } from "./connect.ts";
import type { Identity } from "./identity.ts";
import { stopProcess } from "./leftover.ts";

export interface ServerProcess {
  pid: number;
  /** Resolves to the last thing it logged. */
  ended: Promise<string>;
}

interface LaunchOptions {
  identity: Identity;
  /** Path of the file for its output; begun anew. */
  log: string;
  /** Of a database it has from the beginning. */
  url: string;
}

/** Recovery after a crash can take long. */
const READY_LIMIT_MS = 120_000;

/**
 * Starts the server and waits until it takes connections.
 * @throws StartupError where it does not, with what it logged last
 */
export async function launch(command: string[], options: LaunchOptions): Promise<ServerProcess> {
  const child = await spawnDetached(command, options);
  const { pid } = child;
  const ended = endOf(child).then(async () => lastLine(await readFile(options.log, "utf8")));
  if (pid === undefined) throw new StartupError(`PostgreSQL cannot be started: ${await ended}`);
  try {
    await untilReady(options.url, ended);
  } catch (error) {
    await stopProcess(pid);
    throw error;
  }
  return { pid, ended };
}

// In a session of its own, so that Ctrl-C in the terminal reaches us and not it; output goes to
// a file, not a pipe, so that it can shut down by itself when we are killed.
async function spawnDetached(command: string[], { identity, log }: LaunchOptions) {
  const [file = "", ...args] = command;
  const output = await open(log, "w", 0o600);
  const stdio = ["ignore" as const, output.fd, output.fd];
  const env = plainEnv();
  const child = spawn(file, args, { detached: true, stdio, cwd: "/", env, ...identity.user });
  await output.close();
  return child;
}

function endOf(child: ChildProcess): Promise<void> {
  return new Promise((done) => {
    child.once("exit", () => done()).once("error", () => done());
  });
}

async function untilReady(url: string, ended: Promise<string>): Promise<void> {
  const state = { last: undefined as string | undefined };
  void ended.then((last) => {
    state.last = last;
  });
  for (const limit = Date.now() + READY_LIMIT_MS; Date.now() < limit; await sleep(10)) {
    if (state.last !== undefined) throw new StartupError(`PostgreSQL did not start: ${state.last}`);
    if (await isReady(url)) return;
  }
  throw new StartupError("PostgreSQL did not become ready in time");
}
