import type { HostProcess } from "../gate/held-process.ts";
import { runProgram } from "./run-program.ts";

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
  const whole = ["-N", "/proc/self/fd/3/ns/mnt", ...ALONE, ...args];
  const { code, err } = await runProgram("mount", whole, process.fd);
  if (code !== 0) throw new Error(err.trim().split("\n")[0] || `mount ended with ${code}`);
}
