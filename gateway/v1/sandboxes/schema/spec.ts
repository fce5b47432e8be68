import Type, { type Static } from "typebox";
import { INT64_MAX, mapOf, nullable, words } from "../../../validation/schema.ts";
import { LOG_LEVELS } from "./runtime.ts";
import { SpecMount } from "./spec-mounts.ts";
import { SpecNetwork } from "./spec-network.ts";

const int32 = () => Type.Integer({ format: "int32", minimum: 0 });
const int64 = () => Type.Integer({ format: "int64", minimum: 0, maximum: INT64_MAX });

export const EnvVar = Type.Object(
  { key: Type.String(), value: Type.String() },
  { title: "EnvVar" },
);

export const Resources = Type.Object(
  { vcpus: int32(), memory_mib: int32(), disk_size_mib: nullable(int32()) },
  { title: "Resources", description: "Machine size." },
);

export const Runtime = Type.Object(
  {
    cmd: nullable(Type.Array(Type.String())),
    entrypoint: nullable(Type.Array(Type.String())),
    shell: nullable(Type.String()),
    user: nullable(Type.String()),
    workdir: nullable(Type.String()),
    log_level: nullable(words(LOG_LEVELS)),
    scripts: mapOf(Type.String()),
    hostname: nullable(Type.String(), { description: "Null: made from the name." }),
    metrics_sample_interval_ms: nullable(int64(), { default: 1000 }),
    disable_metrics_sample: Type.Boolean({ default: false }),
  },
  { title: "Runtime" },
);

const SPEC_RLIMIT_RESOURCES = [
  "Cpu",
  "Fsize",
  "Data",
  "Stack",
  "Core",
  "Rss",
  "Nproc",
  "Nofile",
  "Memlock",
  "As",
  "Locks",
  "Sigpending",
  "Msgqueue",
  "Nice",
  "Rtprio",
  "Rttime",
] as const;

export const Rlimit = Type.Object(
  { resource: words(SPEC_RLIMIT_RESOURCES), soft: int64(), hard: int64() },
  { title: "Rlimit" },
);

export const Lifecycle = Type.Object(
  {
    ephemeral: Type.Boolean(),
    idle_timeout_secs: nullable(int64()),
    max_duration_secs: nullable(int64()),
  },
  { title: "Lifecycle" },
);

/** What a sandbox is made of, as its owner may see it: no sealed value, no path of a host. */
export const SandboxSpec = Type.Object(
  {
    image: Type.String({ description: "OCI image reference, as it was given." }),
    resources: Resources,
    runtime: Runtime,
    env: Type.Array(EnvVar),
    labels: mapOf(Type.String()),
    rlimits: Type.Array(Rlimit),
    lifecycle: Lifecycle,
    mounts: Type.Array(SpecMount, { description: "Parents before children." }),
    network: SpecNetwork,
  },
  { title: "SandboxSpec" },
);
export type SandboxSpec = Static<typeof SandboxSpec>;
