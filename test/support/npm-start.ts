import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { delimiter } from "node:path";

export interface StartOptions {
  /** The clone. */
  cwd: string;
  env?: Record<string, string>;
  /** System user to run as. */
  uid?: number;
}

/** A program that was started as a person would. */
export interface Started {
  child: ChildProcess;
  /** What it has printed. */
  stdout(): string;
  stderr(): string;
  /** Resolves to the exit code. */
  ended: Promise<number | null>;
  /** Resolves to the line that it prints to be pasted. */
  curlLine(): Promise<string>;
  /** As the terminal does: to every process of the foreground group. */
  pressCtrlC(): Promise<number | null>;
}

/** Starts `npm start`, in a process group of its own. */
export function npmStart({ cwd, env = {}, uid }: StartOptions): Started {
  const user = uid === undefined ? {} : { uid, gid: uid };
  const child = spawn("npm", ["--silent", "start"], {
    cwd,
    detached: true,
    env: { ...outsideEnv(), ENGINE: "simulated", PORT: "0", LOG_LEVEL: "warn", ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...user,
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output.stderr += chunk;
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  const findCurl = () => /^curl .*$/m.exec(output.stdout)?.[0];
  const curlLine = async () => {
    const found = findCurl();
    if (found !== undefined) return found;
    const more = once(child.stdout, "data").then(() => true);
    if (await Promise.race([more, ended.then(() => false)])) return curlLine();
    throw new Error(`npm start ended: ${output.stderr || output.stdout}`);
  };
  return {
    child,
    stdout: () => output.stdout,
    stderr: () => output.stderr,
    ended,
    curlLine,
    pressCtrlC: () => {
      process.kill(-(child.pid ?? Number.NaN), "SIGINT");
      return ended;
    },
  };
}

/** The environment of a person who never entered this checkout. */
export function outsideEnv(): NodeJS.ProcessEnv {
  const path = (process.env.PATH ?? "").split(delimiter);
  return {
    HOME: process.env.HOME,
    PATH: path.filter((entry) => !entry.includes("node_modules")).join(delimiter),
  };
}

/** The processes that run in or from a folder, by number. */
export function processesOf(folder: string): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => pid !== process.pid && belongsTo(pid, folder));
}

function belongsTo(pid: number, folder: string): boolean {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return command.includes(folder) || readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
  } catch {
    // It has ended meanwhile.
    return false;
  }
}
