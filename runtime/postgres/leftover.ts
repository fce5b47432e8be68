import { execFileSync } from "node:child_process";
import { readFileSync, readlinkSync, realpathSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { StartupError } from "../errors.ts";
import { removeSocketFolder, SOCKET_NAME } from "./socket.ts";

/**
 * Clears what a Sandgate that was killed left behind: its server, which may still run, the
 * server's lock files, and its sockets. The caller holds our lock.
 * @throws StartupError where a server cannot be stopped
 */
export async function clearLeftover(data: string): Promise<void> {
  const lockFile = join(data, "postmaster.pid");
  const text = await readFile(lockFile, "utf8").catch(() => undefined);
  if (text === undefined) return;
  const [pid = "", , , , socketFolder = ""] = text.split("\n");
  if (runsOn(Number(pid), data)) {
    await stopProcess(Number(pid));
  } else if (socketFolder !== "" && (await answers(join(socketFolder, SOCKET_NAME)))) {
    throw new StartupError(
      `A PostgreSQL that is not on this machine's process list uses ${data}: stop it first`,
    );
  }
  // The locks of a dead server would count as held if another process had its number by now.
  await rm(lockFile, { force: true });
  await removeSocketFolder(socketFolder);
}

/** Fast shutdown with a checkpoint, immediate shutdown, no shutdown; and how long each may take. */
const SHUTDOWN = [
  ["SIGINT", 60_000],
  ["SIGQUIT", 5_000],
  ["SIGKILL", 5_000],
] as const;

/**
 * Asks a server to shut down, cutting its connections; past the limit it is made to, and recovers at the next start.
 * @throws StartupError where it does not end
 */
export async function stopProcess(pid: number): Promise<void> {
  for (const [signal, limitMs] of SHUTDOWN) {
    if (!send(pid, signal) || (await ended(pid, limitMs))) return;
  }
  throw new StartupError(`PostgreSQL (process ${pid}) does not end: stop it first`);
}

async function ended(pid: number, limitMs: number): Promise<boolean> {
  for (const end = Date.now() + limitMs; Date.now() < end; await sleep(10)) {
    if (!send(pid, 0) || isZombie(pid)) return true;
  }
  return false;
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Ended, but not yet waited for by its parent, who may never do it. */
function isZombie(pid: number): boolean {
  try {
    return /^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

/** Whether a process is the server of a data folder; numbers of dead processes are used again. */
function runsOn(pid: number, data: string): boolean {
  try {
    if (process.platform === "linux") {
      const isServer = readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "postgres";
      return isServer && readlinkSync(`/proc/${pid}/cwd`) === realpathSync(data);
    }
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)]).includes(`-D ${data}`);
  } catch {
    return false;
  }
}

function answers(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(path).once("error", () => done(false));
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
  });
}
