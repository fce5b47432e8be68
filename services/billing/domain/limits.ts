/** The limits that plans and overrides name. */
export const LIMIT_NAMES = [
  "max_sandboxes",
  "max_concurrent_ephemeral_running",
  "max_concurrent_persistent_running",
  "max_vcpus_per_sandbox",
  "max_memory_mib_per_sandbox",
  "max_disk_size_mib_per_sandbox",
  "max_uptime_minutes_per_sandbox",
  "max_total_storage_gib",
  "included_storage_gib",
  "included_disk_gib_hours",
  "included_vcpu_hours",
  "included_memory_gib_hours",
] as const;

export type LimitName = (typeof LIMIT_NAMES)[number];

/** Null, or none: unlimited. */
export type Limits = Readonly<Partial<Record<LimitName, number | null>>>;

export function isLimitName(name: string): name is LimitName {
  return (LIMIT_NAMES as readonly string[]).includes(name);
}
