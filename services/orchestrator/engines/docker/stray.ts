import { readdir } from "node:fs/promises";
import { HostProcess } from "./gate/held-process.ts";

/**
 * Kills what runs of a container that the daemon believes to be down. A daemon that is killed between starting a container
 * and writing that down does not see it again, cannot stop it, and cannot start it either. Where the daemon's
 * processes are not among those that this program sees there is nothing to kill.
 * @returns how many processes
 */
export async function killStray(containerId: string): Promise<number> {
  let killed = 0;
  for (const name of await readdir("/proc").catch(() => []))
    if (/^\d+$/.test(name) && (await killIn(Number(name), containerId))) killed += 1;
  return killed;
}

async function killIn(pid: number, containerId: string): Promise<boolean> {
  const found = await HostProcess.open(pid);
  if (!found) return false;
  try {
    return (await found.isIn(containerId)) && process.kill(pid, "SIGKILL");
  } catch {
    // It has ended, or belongs to somebody whom this program may not end.
    return false;
  } finally {
    await found.close();
  }
}
