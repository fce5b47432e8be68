import { readdir, readFile, readlink } from "node:fs/promises";
import type Docker from "dockerode";
import { GATE } from "../../../services/orchestrator/engines/docker/gate/gated.ts";
import { LABELS } from "../../../services/orchestrator/engines/docker/names.ts";

/**
 * What only the daemon's host shows: machines that still wait at their gate, and processes of containers that the daemon
 * believes to be down.
 * @param cgroup name of the daemon's parent cgroup
 */
export async function hostFaults(docker: Docker, cgroup: string): Promise<string[]> {
  // Processes first: one that has started since is in the daemon's list.
  const processes = await containerProcesses(cgroup);
  const up = await docker.listContainers();
  const ids = new Set(up.map(({ Id }) => Id));
  const machines = up.filter(({ Labels }) => LABELS.sandbox in Labels);
  const held = await Promise.all(
    machines.map(async ({ Id, Names }) => {
      const { Pid } = (await docker.getContainer(Id).inspect()).State;
      return (await exeOf(Pid)) === GATE ? [`${Names} is up and waits at its gate`] : [];
    }),
  );
  const unseen = processes
    .filter(({ containerId }) => !ids.has(containerId))
    .map(async ({ pid, containerId }) =>
      (await containerOf(String(pid), cgroup)) === containerId
        ? [`process ${pid} runs in container ${containerId}, which is down`]
        : [],
    );
  return [...held, ...(await Promise.all(unseen))].flat();
}

async function containerProcesses(cgroup: string) {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => ({ pid: Number(pid), containerId: await containerOf(pid, cgroup) })),
  );
  return found.flatMap(({ pid, containerId }) => (containerId ? [{ pid, containerId }] : []));
}

async function containerOf(pid: string, cgroup: string): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
  return text.includes(cgroup) ? /[0-9a-f]{64}/.exec(text)?.[0] : undefined;
}

async function exeOf(pid: number): Promise<string | undefined> {
  return readlink(`/proc/${pid}/exe`).catch(() => undefined);
}
