import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pino from "pino";
import { chooseEngine } from "../../../app/engine.ts";
import { openDatabase } from "../../../prisma/database.ts";
import { readConfig } from "../../../runtime/env.ts";
import {
  connectDocker,
  probeDocker,
} from "../../../services/orchestrator/engines/docker/connect.ts";
import { Child } from "../../support/child.ts";
import { DOCKERD } from "../../support/docker-daemon.ts";
import { IMAGES, loadImage } from "../../support/images.ts";
import { hostFaults } from "./docker-sight.ts";
import type { ChaosOptions } from "./options.ts";
import type { EngineHost } from "./system.ts";

const READY_MS = 60_000;

/**
 * Holds network and mount namespaces until its input ends, however that comes. Then nothing may be left: daemons, shims,
 * the containers' processes, which no daemon may be there to end, and their cgroups.
 */
const HOLDER = `
dir=$1; name=$2
busybox ifconfig lo up
echo holding
cat >/dev/null
for file in /proc/[0-9]*/cmdline; do
  pid=\${file#/proc/}; pid=\${pid%/cmdline}
  [ "$pid" = "$$" ] || ! grep -qF "$dir" "$file" 2>/dev/null || kill -9 "$pid" 2>/dev/null
done
find /sys/fs/cgroup -path "*/$name*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u | xargs -r kill -9 2>/dev/null
sleep 0.5
find /sys/fs/cgroup -depth -type d -path "*/$name*" -exec rmdir {} + 2>/dev/null
`;

/** dockerd with a containerd beside it, which outlives it; both in namespaces of their own. Needs root. */
export async function startDockerHost(
  parent: string,
  { liveRestore }: ChaosOptions,
): Promise<EngineHost> {
  const dir = join(parent, "docker");
  await mkdir(dir);
  const holder = await startHolder(dir, cgroupOf(parent));
  const daemons = daemonsOf(dir, cgroupOf(parent), holder.pid ?? 0, liveRestore);
  const host = `unix://${dir}/docker.sock`;
  const close = async () => {
    await Promise.all([daemons.dockerd.kill(), daemons.containerd.kill()]);
    const ended = once(holder, "exit");
    holder.stdin?.end();
    await ended;
  };
  try {
    await writeFile(join(dir, "containerd.toml"), containerdConfig(dir));
    daemons.containerd.start();
    daemons.dockerd.start();
    await answers(host, daemons.dockerd);
    await loadImage(connectDocker({ host }), IMAGES.busybox);
  } catch (error) {
    await close();
    throw error;
  }
  return hostOf(daemons.dockerd, host, parent, close);
}

function hostOf(
  child: Child,
  host: string,
  parent: string,
  close: () => Promise<void>,
): EngineHost {
  // With a network, and so with a gate: a kill may come between a machine's start and its rules.
  const env = { ENGINE: "docker", DOCKER_HOST: host, DOCKER_NETWORK_POLICY: "enforced" };
  return {
    child,
    connect: async (databaseUrl) => {
      const database = openDatabase(databaseUrl, { poolSize: 1 });
      const log = pino({ level: "silent" });
      const config = readConfig({ ...env, DATA_DIR: parent });
      const { engine } = await chooseEngine(config.engine, database, log);
      await database.close();
      return engine;
    },
    faults: () => hostFaults(connectDocker({ host }), cgroupOf(parent)),
    // Frozen it takes connections and answers none.
    setAvailable: async (available) => child.signal(available ? "SIGCONT" : "SIGSTOP"),
    env,
    spec: {
      image: { type: "oci", reference: IMAGES.busybox.name },
      resources: { vcpus: 1, memory_mib: 32 },
    },
    close,
  };
}

function cgroupOf(parent: string): string {
  return parent.split("/").at(-1) ?? "";
}

async function startHolder(dir: string, cgroup: string): Promise<ChildProcess> {
  const namespaces = ["--net", "--mount", "--propagation", "slave"];
  const holder = spawn("unshare", [...namespaces, "sh", "-c", HOLDER, "sh", dir, cgroup], {
    stdio: ["pipe", "pipe", "inherit"],
    // Ctrl-C in the terminal ends the run; this one ends behind it.
    detached: true,
  });
  await once(holder.stdout, "data");
  return holder;
}

function daemonsOf(dir: string, cgroup: string, holder: number, liveRestore: boolean) {
  const inside = [
    "nsenter",
    `--net=/proc/${holder}/ns/net`,
    `--mount=/proc/${holder}/ns/mnt`,
    "--",
  ];
  const daemon = (name: string, command: string[]) =>
    new Child({
      name,
      command: [...inside, ...command],
      env: {},
      log: join(dir, `${name}.log`),
      supervised: true,
    });
  return {
    containerd: daemon("containerd", ["containerd", "--config", join(dir, "containerd.toml")]),
    dockerd: daemon("dockerd", [
      DOCKERD,
      `--host=unix://${dir}/docker.sock`,
      `--containerd=${dir}/containerd.sock`,
      `--data-root=${dir}/data`,
      `--exec-root=${dir}/exec`,
      `--pidfile=${dir}/pid`,
      `--cgroup-parent=/${cgroup}`,
      "--shutdown-timeout=2",
      ...(liveRestore ? ["--live-restore"] : []),
    ]),
  };
}

function containerdConfig(dir: string): string {
  return `version = 2
root = "${dir}/containerd/root"
state = "${dir}/containerd/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "${dir}/containerd.sock"
`;
}

async function answers(host: string, dockerd: Child): Promise<void> {
  const until = Date.now() + READY_MS;
  while (!(await probeDocker({ host })).ok) {
    if (Date.now() > until)
      throw new Error(`dockerd did not start:\n${dockerd.output().slice(-2_000)}`);
    await sleep(100);
  }
}
