import type Docker from "dockerode";
import type { EngineLog } from "../log.ts";
import type { DirectoryVolumes } from "../volumes/directory-volumes.ts";
import { call } from "./call.ts";
import type { DiskMemory } from "./disk-memory.ts";
import type { PolicyKeeper } from "./gate/keeper.ts";
import type { ImageSource } from "./images/ensure-image.ts";
import type { MountKeeper } from "./mounts/keeper.ts";
import type { SharedWork } from "./shared-work.ts";
import type { WorkloadEnds } from "./workload-ends.ts";

/** What the parts of this engine share. */
export interface DockerContext {
  docker: Docker;
  installationId: string;
  /** Asked for once, and again after a failure. */
  host: () => Promise<DockerHost>;
  images: ImageSource;
  disks: DiskMemory;
  /** Networks that are being made, so that one process makes each once. */
  networks: SharedWork<string>;
  /** The OCI runtime that the operator chose; undefined: the daemon's own choice. */
  runtime: string | undefined;
  workloads: WorkloadEnds;
  policies: PolicyKeeper;
  mounting: MountKeeper;
  /** On this host; undefined: there are none. */
  volumes: DirectoryVolumes | undefined;
  log: EngineLog;
}

/** The log of one sandbox, at the level that its spec asks for; null: at the program's. */
export function sandboxLog(
  { log }: DockerContext,
  sandboxId: string,
  level: string | null | undefined,
): EngineLog {
  const fields = { sandbox_id: sandboxId };
  return level ? log.child(fields, { level }) : log.child(fields);
}

/** The daemon's machine. */
export interface DockerHost {
  vcpus: number;
  memoryMib: number;
  /** As images name it, such as `amd64`. */
  architecture: string;
  /** The daemon has an init program to put in front of a container's own. */
  hasInit: boolean;
}

const MIB = 1024 * 1024;

/** The parts of the daemon's `/info` that count here; its client has no type for it. */
interface Info {
  NCPU: number;
  MemTotal: number;
  InitCommit?: { ID: string };
}

/** @throws EngineUnavailable, DockerError */
export async function readHost(docker: Docker): Promise<DockerHost> {
  const [info, version] = await Promise.all([
    call<Info>(() => docker.info()),
    call(() => docker.version()),
  ]);
  return {
    vcpus: info.NCPU,
    memoryMib: Math.floor(info.MemTotal / MIB),
    architecture: version.Arch,
    // What the daemon says when it cannot run its init's `--version`.
    hasInit: info.InitCommit?.ID !== "N/A",
  };
}
