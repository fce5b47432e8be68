import Type, { type Static } from "typebox";
import type { RuleFault } from "../../../validation/rule.ts";
import { asRecord } from "../../../validation/rule.ts";
import { int32, int64, optional, text, words } from "../../../validation/schema.ts";
import { envKeyFault } from "./keys.ts";

/** An environment variable of a create; `MSB_` is the platform's own. */
export const EnvVarInput = Type.Object(
  {
    key: Type.String({
      description: "Not empty, without `=` and NUL, not beginning with `MSB_`.",
      minLength: 1,
      rule: envKeyFault,
    }),
    value: text(),
  },
  { title: "EnvVarInput" },
);

export const ResourcesInput = Type.Object(
  {
    vcpus: optional(int32(1), { description: "Virtual CPUs.", default: 1 }),
    memory_mib: optional(int32(1), { description: "Memory in MiB.", default: 512 }),
    disk_size_mib: optional(int32(0), {
      description: "Writable disk in MiB; null leaves it to the deployment.",
      default: null,
    }),
  },
  { title: "ResourcesInput", description: "Machine size." },
);

export const RLIMIT_RESOURCES = [
  "cpu",
  "fsize",
  "data",
  "stack",
  "core",
  "rss",
  "nproc",
  "nofile",
  "memlock",
  "as",
  "locks",
  "sigpending",
  "msgqueue",
  "nice",
  "rtprio",
  "rttime",
] as const;

export const RlimitInput = Type.Object(
  {
    resource: words(RLIMIT_RESOURCES, { description: "What is limited." }),
    soft: int64(0, { description: "At most `hard`." }),
    hard: int64(0),
  },
  { title: "RlimitInput", description: "A POSIX resource limit.", rule: softAboveHard },
);

export const LifecycleInput = Type.Object(
  {
    ephemeral: optional(Type.Boolean(), {
      description: "Remove the sandbox when it has stopped or failed.",
      default: false,
    }),
    idle_timeout_secs: optional(int64(0), {
      description: "Stop after so many idle seconds; 0 or null: never.",
      default: null,
    }),
    max_duration_secs: optional(int64(0), {
      description: "Stop a run after so many seconds; 0 or null: never.",
      default: null,
    }),
  },
  { title: "LifecycleInput" },
);

export const PULL_POLICIES = ["if_missing", "always", "never"] as const;
export const SECURITY_PROFILES = ["default", "restricted"] as const;

export type EnvVarInput = Static<typeof EnvVarInput>;
export type ResourcesInput = Static<typeof ResourcesInput>;
export type RlimitInput = Static<typeof RlimitInput>;
export type LifecycleInput = Static<typeof LifecycleInput>;

function softAboveHard(value: unknown): RuleFault[] {
  const { soft, hard } = asRecord(value) ?? {};
  const above = typeof soft === "number" && typeof hard === "number" && soft > hard;
  return above ? [{ at: ["soft"], message: "must not be above hard" }] : [];
}
