import type { Engine } from "../engine.ts";
import type { EngineLog } from "../log.ts";
import type { DirectoryVolumes } from "../volumes/directory-volumes.ts";
import { guarded } from "./call.ts";
import { connectDocker, defaultDockerHost } from "./connect.ts";
import { type DockerContext, type DockerHost, readHost } from "./context.ts";
import { DiskMemory } from "./disk-memory.ts";
import { ensureRunning } from "./ensure-running.ts";
import { createPolicyKeeper, type Enforcement } from "./gate/keeper.ts";
import { createImageSource } from "./images/ensure-image.ts";
import type { PullPatience } from "./images/pull.ts";
import { createLister } from "./list-instances.ts";
import { readLogs } from "./logs/read-logs.ts";
import { createMountKeeper, type Mounting } from "./mounts/keeper.ts";
import { SharedWork } from "./shared-work.ts";
import { removeMachine, stopMachine } from "./stop-and-remove.ts";
import { watchMachines } from "./watch.ts";
import { WorkloadEnds } from "./workload-ends.ts";

export interface DockerEngineOptions {
  /** Containers that carry it are this engine's; it touches no other. */
  installationId: string;
  docker: {
    /** See DockerAddress. */
    host: string | undefined;
    /** Of the operator's `config.json`; undefined: `~/.docker`. */
    configDirectory?: string;
    patience?: PullPatience;
    /** `unenforced`: the operator accepts that network policies are not kept. */
    networkPolicy?: "enforced" | "unenforced";
    /** `loop`: the operator accepts that the host's kernel reads file systems that tenants wrote. */
    diskImages?: "refused" | "loop";
    /** An OCI runtime that the daemon knows; undefined: the daemon's own choice. */
    runtime?: string | undefined;
  };
  log: EngineLog;
  /** On this host; undefined: there are none. */
  volumes?: DirectoryVolumes | undefined;
}

const PATIENCE: PullPatience = { answerMs: 30_000, stallMs: 120_000 };
/** What of services/sandbox/domain/requirements.ts this engine honours. */
const FEATURES = [
  "init",
  "lifecycle.idle_timeout_secs",
  "mounts.tmpfs",
  "patches",
  "runtime.log_level",
  "runtime.scripts",
];

export interface DockerEngine extends Engine {
  /** Finds out whether network policies can be kept, on which the features depend. */
  enforcement(): Promise<Enforcement>;
  /** The same of volumes in sandboxes. */
  mounting(): Promise<Mounting>;
}

/**
 * Sandboxes as containers, one each, whose writable layer is the sandbox's disk.
 * @throws StartupError for an address that is none
 */
export function createDockerEngine(options: DockerEngineOptions): DockerEngine {
  const ctx = createContext(options);
  const list = createLister(ctx);
  const closed = new AbortController();
  let watched = false;
  return {
    name: "docker",
    volumes: options.volumes,
    features: () => [...FEATURES, ...ctx.policies.features(), ...ctx.mounting.features()],
    enforcement: () => guarded(ctx.policies.look),
    mounting: () => guarded(ctx.mounting.look),
    capacity: () =>
      guarded(async () => {
        // Asked for now and then: what could not be kept then may be by now.
        ctx.policies.lookAgain();
        ctx.mounting.lookAgain();
        const { vcpus, memoryMib } = await ctx.host();
        return { vcpus, memoryMib };
      }),
    ensureRunning: (allocation, signal) =>
      guarded(() => ensureRunning(ctx, allocation, AbortSignal.any([signal, closed.signal]))),
    stop: (run, graceMs) => guarded(() => stopMachine(ctx, run, graceMs)),
    remove: (sandboxId) => guarded(() => removeMachine(ctx, sandboxId)),
    list: () => guarded(list),
    watch: (signal) => {
      // A daemon that went away may come back as another one.
      if (watched) lookAtAll(ctx).catch(() => undefined);
      watched = true;
      return watchMachines(ctx, AbortSignal.any([signal, closed.signal]));
    },
    logs: (run, after, signal) =>
      guarded(() => readLogs(ctx, run, after, AbortSignal.any([signal, closed.signal]))),
    close: async () => {
      closed.abort();
      ctx.workloads.keep([]);
    },
  };
}

// One after the other: both fill what holds the gate.
async function lookAtAll({ policies, mounting }: DockerContext): Promise<void> {
  await policies.look();
  await mounting.look();
}

function createContext({
  installationId,
  docker: config,
  log,
  volumes,
}: DockerEngineOptions): DockerContext {
  const docker = connectDocker(config);
  const host = remembered(() => readHost(docker));
  const images = createImageSource({
    docker,
    architecture: async () => (await host()).architecture,
    patience: config.patience ?? PATIENCE,
    configDirectory: config.configDirectory,
  });
  const { runtime } = config;
  const isLocal = (config.host ?? defaultDockerHost()).startsWith("unix:");
  const gate = { docker, installationId, host, isLocal, runtime };
  const demanded = config.networkPolicy !== "unenforced";
  const policies = createPolicyKeeper({ ...gate, demanded });
  const mounting = createMountKeeper({ ...gate, volumes, diskImages: config.diskImages });
  const workloads = new WorkloadEnds(docker);
  const disks = new DiskMemory();
  const networks = new SharedWork<string>();
  return {
    docker,
    installationId,
    host,
    images,
    disks,
    networks,
    policies,
    mounting,
    volumes,
    runtime,
    workloads,
    log,
  };
}

// A failure is not kept: the daemon may be up the next time.
function remembered(read: () => Promise<DockerHost>): () => Promise<DockerHost> {
  let known: Promise<DockerHost> | undefined;
  return () => {
    known ??= read().catch((error: unknown) => {
      known = undefined;
      throw error;
    });
    return known;
  };
}
