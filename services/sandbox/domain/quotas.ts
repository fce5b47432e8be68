import { ServiceError } from "../../../runtime/errors.ts";
import type { SandboxSpec } from "./spec.ts";

/** Limits that this service keeps, by their public names. */
export type Limit =
  | "max_sandboxes"
  | "max_concurrent_ephemeral_running"
  | "max_concurrent_persistent_running"
  | "max_vcpus_per_sandbox"
  | "max_memory_mib_per_sandbox"
  | "max_disk_size_mib_per_sandbox"
  | "max_uptime_minutes_per_sandbox";

/** What an organization may have, and what it has. */
export interface Standing {
  /** Null, or none: unlimited. */
  limits: Readonly<Record<string, number | null>>;
  /** Of a plan that ends with it; nothing starts any more. */
  exhaustedPool: string | null;
  used: { total: number; ephemeral: number; persistent: number };
}

/** What is asked for: a new sandbox, a start, or both. */
export interface Asked {
  spec: Pick<SandboxSpec, "resources" | "lifecycle">;
  create: boolean;
  start: boolean;
}

/** The first quota that what is asked for would exceed; undefined: none. Pure. */
export function overQuota(standing: Standing, asked: Asked): ServiceError | undefined {
  for (const [quota, used, requested] of wants(standing, asked)) {
    const limit = standing.limits[quota] ?? null;
    if (limit !== null && used + requested > limit)
      return exceeded(quota, { limit, used, requested });
  }
  const { exhaustedPool: pool, limits } = standing;
  return asked.start && pool !== null ? exceeded(pool, { limit: limits[pool] }) : undefined;
}

function wants({ used }: Standing, { spec, create, start }: Asked): [Limit, number, number][] {
  const { vcpus, memoryMib, diskSizeMib } = spec.resources;
  const size: [Limit, number, number][] = [
    ["max_vcpus_per_sandbox", 0, vcpus],
    ["max_memory_mib_per_sandbox", 0, memoryMib],
    // Without a size of its own a disk is the engine's matter.
    ["max_disk_size_mib_per_sandbox", 0, diskSizeMib ?? 0],
  ];
  const run: [Limit, number, number] = spec.lifecycle.ephemeral
    ? ["max_concurrent_ephemeral_running", used.ephemeral, 1]
    : ["max_concurrent_persistent_running", used.persistent, 1];
  return [
    ...(create ? [["max_sandboxes", used.total, 1] satisfies [Limit, number, number]] : []),
    ...size,
    // A limit of nothing lets nothing start.
    ...(start ? [["max_uptime_minutes_per_sandbox", 0, 1] satisfies [Limit, number, number]] : []),
    ...(start ? [run] : []),
  ];
}

function exceeded(quota: string, numbers: Record<string, number | null | undefined>): ServiceError {
  const told = Object.entries(numbers).filter(([, number]) => typeof number === "number");
  return quotaExceeded({
    quota,
    ...Object.fromEntries(told.map(([name, n]) => [name, String(n)])),
  });
}

/** @param metadata the quota by its name, with `limit`, `used` and `requested` where they are known */
export function quotaExceeded(metadata: { quota: string } & Record<string, string>): ServiceError {
  return new ServiceError("QUOTA_EXCEEDED", `quota exceeded: ${metadata.quota}`, { metadata });
}
