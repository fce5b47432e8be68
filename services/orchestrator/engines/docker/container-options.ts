import type { ContainerCreateOptions, HostConfig } from "dockerode";
import type { Allocation, EngineSpec } from "../engine.ts";
import type { InitProgram } from "./init.ts";
import { dockerTmpfs, tmpfsMib } from "./mounts/plan.ts";
import { hostnameOf, LABELS, NO_WORKLOAD, networkName, WORKLOAD } from "./names.ts";
import { extraHosts } from "./patches/steps.ts";
import type { ImageConfig } from "./workload.ts";

const MIB = 1024 * 1024;
/** Enough for any honest workload; a fork bomb ends here and not on the host. */
const PIDS_MAX = 4096;
/**
 * Of each sandbox's output the daemon keeps so much on its disk. Its `json-file` would replace a character that is cut
 * by the end of a piece of a long line; `local` keeps the bytes.
 */
const LOG = { Type: "local", Config: { "max-size": "10m", "max-file": "3", compress: "false" } };

/** PID 1 of a machine is root's, whoever else its processes belong to. */
const ROOT = "0:0";

/** How a container runs what it runs. */
export interface Launch {
  entrypoint: string[];
  cmd: string[];
  env: Record<string, string>;
  /** The daemon puts its init in front as PID 1. */
  init: boolean;
  /** Its end is written to standard error; see saysWorkloadEnded. */
  hasWorkload: boolean;
  /** It has none, which only its image could tell; see turnedOutEmpty. */
  isEmpty: boolean;
  /** An init of the image's own is PID 1. */
  ownInit?: InitProgram;
}

/** The whole request for a sandbox's container. Pure. */
export function containerOptions(
  allocation: Allocation,
  image: Pick<ImageConfig, "id" | "labels">,
  installationId: string,
  launch: Launch,
  runtime: string | undefined,
): ContainerCreateOptions {
  const { spec } = allocation;
  const { workdir } = spec.runtime;
  const user = launch.ownInit ? ROOT : spec.runtime.user;
  return {
    Image: image.id,
    Hostname: hostnameOf(allocation.name),
    Labels: { ...blanked(image), ...labels(allocation, installationId, launch) },
    Env: environment(spec, launch),
    Entrypoint: launch.entrypoint,
    Cmd: launch.cmd,
    ...(user === null ? {} : { User: user }),
    ...(workdir === null ? {} : { WorkingDir: workdir }),
    // The contract's, whatever the image asks for.
    StopSignal: launch.ownInit?.stopSignal ?? "SIGTERM",
    // The image's own check would probe a service that an idle sandbox does not run.
    Healthcheck: { Test: ["NONE"] },
    HostConfig: {
      ...hostConfig(spec, networkName(installationId), launch),
      ExtraHosts: extraHosts(allocation),
      ...(runtime === undefined ? {} : { Runtime: runtime }),
    },
  };
}

// A container takes over what its image is labelled with, unless it says otherwise; that it says nothing cannot be said.
function blanked({ labels }: Pick<ImageConfig, "labels">): Record<string, string> {
  return Object.fromEntries(labels.map((name) => [name, ""]));
}

// A sandbox's labels stand behind a prefix: raw ones would speak to whatever else reads the labels
// of this host's containers, a reverse proxy that takes its routes from them for one.
function labels(
  allocation: Allocation,
  installationId: string,
  { hasWorkload, isEmpty }: Launch,
): Record<string, string> {
  const { labels, lifecycle, runtime } = allocation.spec;
  const own = Object.entries(labels);
  const isTimed = (lifecycle.idleTimeoutSecs ?? 0) > 0;
  return {
    ...Object.fromEntries(own.map(([key, value]) => [`${LABELS.ofSandbox}${key}`, value])),
    [LABELS.installation]: installationId,
    [LABELS.sandbox]: allocation.sandboxId,
    [LABELS.organization]: allocation.orgId,
    ...(runtime.logLevel === null ? {} : { [LABELS.logLevel]: runtime.logLevel }),
    ...(isTimed && hasWorkload ? { [LABELS.watched]: WORKLOAD } : {}),
    ...(isTimed && isEmpty ? { [LABELS.watched]: NO_WORKLOAD } : {}),
  };
}

function environment({ env, runtime }: EngineSpec, launch: Launch): string[] {
  const values = new Map<string, string>();
  if (runtime.shell !== null) values.set("SHELL", runtime.shell);
  for (const { key, value } of env) values.set(key, value);
  for (const [key, value] of Object.entries(launch.env)) values.set(key, value);
  return [...values].map(([key, value]) => `${key}=${value}`);
}

function hostConfig(spec: EngineSpec, network: string, launch: Launch): HostConfig {
  const restricted = spec.securityProfile === "restricted";
  const memory = spec.resources.memoryMib * MIB;
  return {
    NanoCpus: spec.resources.vcpus * 1e9,
    Memory: memory,
    // The sum of memory and swap: no swap.
    MemorySwap: memory,
    PidsLimit: PIDS_MAX,
    Ulimits: spec.rlimits.map(({ resource, soft, hard }) => ({
      Name: resource,
      Soft: soft,
      Hard: hard,
    })),
    Tmpfs: { ...launch.ownInit?.tmpfs, ...tmpfs(spec, restricted) },
    NetworkMode: spec.network.enabled ? network : "none",
    // Raw sockets would let a sandbox forge its neighbours' addresses on the bridge; ping works without.
    CapDrop: restricted ? ["ALL"] : ["NET_RAW"],
    SecurityOpt: restricted ? ["no-new-privileges"] : [],
    Init: launch.init,
    LogConfig: LOG,
    RestartPolicy: { Name: "no" },
  };
}

function tmpfs(spec: EngineSpec, restricted: boolean): Record<string, string> {
  return Object.fromEntries(
    dockerTmpfs(spec).map(({ guest, options, sizeMib }) => {
      const size = tmpfsMib(spec, sizeMib);
      // Docker's defaults are the opposite, so each is said.
      const flags = [
        options.readonly ? "ro" : "rw",
        options.noexec ? "noexec" : "exec",
        options.nosuid || restricted ? "nosuid" : "suid",
        options.nodev || restricted ? "nodev" : "dev",
      ];
      return [guest, `${flags.join(",")},size=${size}m`];
    }),
  );
}
