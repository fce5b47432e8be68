import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { probeDocker } from "../../services/orchestrator/engines/docker/connect.ts";

export const DOCKERD = "/usr/sbin/dockerd";
/** Beside `runc`, under a name that only this daemon has. */
export const OTHER_RUNTIME = "sandgate-other";
const START_MS = 30_000;
const STOP_MS = 45_000;

/**
 * Runs until its standard input ends, that is until the tests end, however they end; then puts everything away. In
 * its own network and mount namespaces the daemon's bridges, firewall rules and mounts go with it.
 */
const SCRIPT = `
dir=$1; shift
busybox ifconfig lo up
${DOCKERD} "$@" >"$dir/log" 2>&1 &
cat >/dev/null
kill "$!" && wait "$!"
find /sys/fs/cgroup -depth -type d -path "*/$(basename "$dir")*" -exec rmdir {} + 2>/dev/null
rm -rf "$dir"
`;

export interface DockerDaemon {
  host: string;
  /** The network namespace that its containers and its registries are reached in. */
  network: string;
  stop(): Promise<void>;
}

/**
 * Starts a Docker daemon of this test run's own; needs root.
 * @throws Error with the end of its log
 */
export async function startDockerDaemon(): Promise<DockerDaemon> {
  const dir = await mkdtemp(join(tmpdir(), "sandgate-docker-"));
  const host = `unix://${dir}/docker.sock`;
  const namespaces = ["--net", "--mount", "--propagation", "slave"];
  const script = ["sh", "-c", SCRIPT, "sh", dir, ...settings(dir, host)];
  const child = spawn("unshare", [...namespaces, ...script], {
    stdio: ["pipe", "ignore", "ignore"],
    // Ctrl-C in the terminal is for the tests; this one ends when they do.
    detached: true,
  });
  const ended = once(child, "exit");
  const stop = async () => {
    child.stdin.end();
    const late = sleep(STOP_MS, "late", { ref: false });
    if ((await Promise.race([ended, late])) === "late")
      throw new Error(`the Docker daemon in ${dir} does not end`);
  };
  try {
    await answers(host, dir);
  } catch (error) {
    await stop();
    throw error;
  }
  return { host, network: `/proc/${child.pid}/ns/net`, stop };
}

function settings(dir: string, host: string): string[] {
  return [
    `--host=${host}`,
    `--data-root=${dir}/data`,
    `--exec-root=${dir}/exec`,
    `--pidfile=${dir}/pid`,
    `--cgroup-parent=/${dir.split("/").at(-1)}`,
    "--shutdown-timeout=2",
    `--add-runtime=${OTHER_RUNTIME}=/usr/sbin/runc`,
  ];
}

async function answers(host: string, dir: string): Promise<void> {
  const until = Date.now() + START_MS;
  while (!(await probeDocker({ host })).ok) {
    if (Date.now() > until) {
      const log = await readFile(join(dir, "log"), "utf8").catch(() => "");
      throw new Error(`dockerd did not start:\n${log.slice(-2000)}`);
    }
    await sleep(50);
  }
}
