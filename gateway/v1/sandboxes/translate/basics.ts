import { create } from "@bufbuild/protobuf";
import {
  type Init,
  InitSchema,
  type Lifecycle,
  LifecycleSchema,
  type Resources,
  ResourcesSchema,
  type Rlimit,
  RlimitSchema,
  type Runtime,
  RuntimeSchema,
} from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given, nameOf, toBigInt, toNumber } from "../../values.ts";
import type { LifecycleInput, ResourcesInput, RlimitInput } from "../schema/basics.ts";
import type { InitInput, RuntimeInput } from "../schema/runtime.ts";
import type { SandboxSpec as PublicSpec } from "../schema/spec.ts";
import { logLevels, rlimitResources, specRlimitResources } from "./enums.ts";

const DEFAULT_VCPUS = 1;
const DEFAULT_MEMORY_MIB = 512;
const METRICS_INTERVAL_MS = 1000;

export function resourcesMessage(resources: ResourcesInput): Resources {
  return create(ResourcesSchema, {
    vcpus: given(resources.vcpus),
    memoryMib: given(resources.memory_mib),
    diskSizeMib: given(resources.disk_size_mib),
  });
}

export function publicResources(resources: Resources | undefined): PublicSpec["resources"] {
  return {
    vcpus: resources?.vcpus ?? DEFAULT_VCPUS,
    memory_mib: resources?.memoryMib ?? DEFAULT_MEMORY_MIB,
    disk_size_mib: resources?.diskSizeMib ?? null,
  };
}

export function runtimeMessage(runtime: RuntimeInput): Runtime {
  return create(RuntimeSchema, {
    cmd: runtime.cmd ? { values: runtime.cmd } : undefined,
    entrypoint: runtime.entrypoint ? { values: runtime.entrypoint } : undefined,
    shell: given(runtime.shell),
    user: given(runtime.user),
    workdir: given(runtime.workdir),
    logLevel: runtime.log_level ? logLevels[runtime.log_level] : undefined,
    scripts: { ...runtime.scripts },
  });
}

export function publicRuntime(runtime: Runtime | undefined): PublicSpec["runtime"] {
  const { logLevel } = runtime ?? {};
  return {
    cmd: runtime?.cmd?.values ?? null,
    entrypoint: runtime?.entrypoint?.values ?? null,
    shell: runtime?.shell ?? null,
    user: runtime?.user ?? null,
    workdir: runtime?.workdir ?? null,
    log_level: logLevel === undefined ? null : nameOf(logLevels, logLevel),
    scripts: { ...runtime?.scripts },
    hostname: null,
    metrics_sample_interval_ms: METRICS_INTERVAL_MS,
    disable_metrics_sample: false,
  };
}

export function rlimitMessage({ resource, soft, hard }: RlimitInput): Rlimit {
  return create(RlimitSchema, {
    resource: rlimitResources[resource],
    soft: BigInt(soft),
    hard: BigInt(hard),
  });
}

export function publicRlimit({ resource, soft, hard }: Rlimit): PublicSpec["rlimits"][number] {
  return {
    resource: nameOf(specRlimitResources, resource),
    soft: Number(soft),
    hard: Number(hard),
  };
}

export function lifecycleMessage(lifecycle: LifecycleInput): Lifecycle {
  return create(LifecycleSchema, {
    ephemeral: lifecycle.ephemeral ?? false,
    idleTimeoutSecs: toBigInt(lifecycle.idle_timeout_secs),
    maxDurationSecs: toBigInt(lifecycle.max_duration_secs),
  });
}

export function publicLifecycle(lifecycle: Lifecycle | undefined): PublicSpec["lifecycle"] {
  return {
    ephemeral: lifecycle?.ephemeral ?? false,
    idle_timeout_secs: toNumber(lifecycle?.idleTimeoutSecs),
    max_duration_secs: toNumber(lifecycle?.maxDurationSecs),
  };
}

export function initMessage({ cmd, args, env }: InitInput): Init {
  return create(InitSchema, {
    cmd,
    args: args ?? [],
    env: (env ?? []).map(([key, value]) => ({ key, value })),
  });
}
