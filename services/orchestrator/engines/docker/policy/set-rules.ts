import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import type { HostProcess } from "../gate/held-process.ts";
import { TABLE } from "./ruleset.ts";

const TIMEOUT_MS = 10_000;
/** Puts the rules that it reads in force, all at once, and shows what is in force then. */
const SCRIPT = `nft -f - && nft list table ${TABLE}`;

/**
 * Sets the rules of a process's network namespace.
 * @throws Error with the last line of what nft said where they are not in force afterwards
 */
export async function setRules(process: HostProcess, ruleset: string): Promise<void> {
  const { code, out, err } = await nft(process, ruleset);
  if (code !== 0) throw new Error(lastLine(err) ?? `nft ended with ${code}`);
  for (const hook of ["input", "output", "forward"])
    if (!new RegExp(`hook ${hook} .*policy drop;`).test(out))
      throw new Error(`nft took the rules, but there is no chain for ${hook}`);
}

/** The environment of programs that need root: distributions keep them out of other users' PATH. */
export function rootPath(): string {
  return [process.env.PATH, "/usr/sbin:/sbin"].filter(Boolean).join(":");
}

async function nft(
  process: HostProcess,
  ruleset: string,
): Promise<{ code: number | null; out: string; err: string }> {
  // The directory in /proc is given as the child's own file 3: no number that could be somebody else's by now.
  const child = spawn("nsenter", ["--net=/proc/self/fd/3/ns/net", "sh", "-c", SCRIPT], {
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
  stdin.end(ruleset);
  const [code, out, err] = await Promise.all([ended, text(stdout), text(stderr)]);
  return { code, out, err };
}

function lastLine(said: string): string | undefined {
  return said
    .trim()
    .split("\n")
    .find((line) => /error|cannot|not found|denied/i.test(line));
}
