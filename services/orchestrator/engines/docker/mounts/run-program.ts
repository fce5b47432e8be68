import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { rootPath } from "../policy/set-rules.ts";

const TIMEOUT_MS = 10_000;

/**
 * Runs one of the host's own programs.
 * @param fds handles that it gets as its files 3 and up: their paths in /proc stay what they are, whoever closes a number
 * @throws Error where it cannot be run
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  ...fds: number[]
): Promise<{ code: number | null; out: string; err: string }> {
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe", ...fds],
    env: { PATH: rootPath(), LC_ALL: "C" },
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code));
  });
  const said = [child.stdout, child.stderr].map((pipe) => (pipe ? text(pipe) : ""));
  const [code, out = "", err = ""] = await Promise.all([ended, ...said]);
  return { code, out, err };
}
