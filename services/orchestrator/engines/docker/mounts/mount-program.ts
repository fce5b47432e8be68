import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import type { HostProcess } from "../gate/held-process.ts";
import { rootPath } from "../policy/set-rules.ts";

const TIMEOUT_MS = 10_000;

// The sandbox's disk is root while it mounts: nothing there is asked, no fstab, no helper, no list of mounts.
const ALONE = ["-c", "-i", "-n", "--options-mode", "ignore", "--options-source", "disable"];

/**
 * Mounts in a process's mount namespace by util-linux's mount, which enters it for the system calls alone: no path leads
 * out of what that process can see.
 * @param args as of `mount`; source and target are both named
 * @throws Error with what it said
 */
export async function mountIn(process: HostProcess, args: readonly string[]): Promise<void> {
  // The directory in /proc is given as the child's own file 3: no number that could be somebody else's by now.
  const child = spawn("mount", ["-N", "/proc/self/fd/3/ns/mnt", ...ALONE, ...args], {
    stdio: ["ignore", "ignore", "pipe", process.fd],
    env: { PATH: rootPath(), LC_ALL: "C" },
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code));
  });
  const [code, said] = await Promise.all([ended, child.stderr ? text(child.stderr) : ""]);
  if (code !== 0) throw new Error(said.trim().split("\n")[0] || `mount ended with ${code}`);
}
