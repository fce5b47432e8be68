import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import type { HostProcess } from "../gate/held-process.ts";
import { TABLE } from "./ruleset.ts";

const TIMEOUT_MS = 10_000;
const UNKNOWN = { code: null, out: "", err: "" };

/**
 * Sets the rules of a process's network namespace, all at once; what stood before goes in the same moment.
 * @throws Error with what nft said where it refused them
 */
export async function setRules(process: HostProcess, table: string): Promise<void> {
  // Almost every namespace is new, and to delete first takes the kernel three times as long.
  const made = await nft(process, `create table ${TABLE}\n${table}`);
  if (made.code === 0) return;
  const { code, err } = await nft(process, `table ${TABLE}\ndelete table ${TABLE}\n${table}`);
  if (code !== 0) throw new Error(lastLine(err) ?? `nft ended with ${code}`);
}

/**
 * Whether rules are in force in a process's network namespace, by the kernel's own word.
 * @returns undefined where nft does not say
 */
export async function hasRules(process: HostProcess): Promise<boolean | undefined> {
  const { code, out, err } = await nft(process, `list table ${TABLE}\n`).catch(() => UNKNOWN);
  if (code !== 0) return /Error: No such file or directory/.test(err) ? false : undefined;
  return ["input", "output", "forward"].every((hook) =>
    new RegExp(`hook ${hook} .*policy drop;`).test(out),
  );
}

/** The environment of programs that need root: distributions keep them out of other users' PATH. */
export function rootPath(): string {
  return [process.env.PATH, "/usr/sbin:/sbin"].filter(Boolean).join(":");
}

async function nft(
  process: HostProcess,
  commands: string,
): Promise<{ code: number | null; out: string; err: string }> {
  // The directory in /proc is given as the child's own file 3: no number that could be somebody else's by now.
  const child = spawn("nsenter", ["--net=/proc/self/fd/3/ns/net", "nft", "-f", "-"], {
    stdio: ["pipe", "pipe", "pipe", process.fd],
    env: { PATH: rootPath(), LC_ALL: "C" },
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code));
  });
  const { stdin, stdout, stderr } = child;
  if (!stdin || !stdout || !stderr) throw new Error("nsenter was started without pipes");
  // A child that ended early has its own words for it.
  stdin.on("error", () => undefined);
  stdin.end(commands);
  const [code, out, err] = await Promise.all([ended, text(stdout), text(stderr)]);
  return { code, out, err };
}

function lastLine(said: string): string | undefined {
  return said
    .trim()
    .split("\n")
    .find((line) => /error|cannot|failed|not found|denied/i.test(line));
}
