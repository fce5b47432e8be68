import type { QuotaUsage, StorageBreakdown, UsageBreakdown, UsageSummary } from "./schema.ts";

const sandbox = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
const volume = "019a9f2e-9c31-7b22-a0d4-1e2f3a4b5c6d";
const today = "2026-11-21T00:00:00.000Z";

export const exampleQuotas: QuotaUsage = {
  max_sandboxes: 20,
  max_concurrent_ephemeral_running: 5,
  max_concurrent_persistent_running: 2,
  max_vcpus_per_sandbox: 2,
  max_memory_mib_per_sandbox: 4096,
  max_disk_size_mib_per_sandbox: 10240,
  max_uptime_minutes_per_sandbox: 60,
  max_total_storage_gib: 5,
  included_storage_gib: 5,
  included_disk_gib_hours: null,
  included_vcpu_hours: 50,
  included_memory_gib_hours: 100,
  total_sandboxes: 3,
  concurrent_ephemeral_running: 1,
  concurrent_persistent_running: 0,
  vcpu_hours_used: 1.5,
  memory_gib_hours_used: 0.75,
  hard_cap: true,
  pool_exhausted: false,
  is_suspended: false,
};

export const exampleUsage: UsageSummary = {
  period_start: "2026-11-01T00:00:00.000Z",
  period_end: "2026-11-21T08:15:30.120Z",
  line_items: [
    { name: "vcpu", quantity: 1.5, unit: "vcpu_hours", amount_cents: 8 },
    { name: "memory", quantity: 0.75, unit: "gib_hours", amount_cents: 1 },
  ],
  total_cents: 9,
  projected_spend_cents: 13,
  daily: [
    { date: today, metric: "vcpu", quantity: 1.5 },
    { date: today, metric: "memory", quantity: 0.75 },
  ],
  storage_gib: null,
};

export const exampleSandboxUsage: UsageBreakdown = {
  rows: [
    {
      sandbox_id: sandbox,
      day: today,
      vcpu_seconds: 5400,
      mem_mib_seconds: 2764800,
      disk_mib_seconds: 0,
    },
  ],
  sandboxes: [{ id: sandbox, name: "build-42", slug: "brave-otter-42" }],
};

export const exampleStorageUsage: StorageBreakdown = {
  rows: [{ volume_id: volume, day: today, mib_seconds: 921600 }],
  volumes: [{ id: volume, name: null }],
};
