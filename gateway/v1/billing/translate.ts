import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  GetQuotasResponse,
  GetUsageResponse,
  ListSandboxUsageResponse,
  ListStorageUsageResponse,
  WindowSchema,
} from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import { toExactTime, toInstant } from "../times.ts";
import { toTime } from "../values.ts";
import type {
  QuotaUsage,
  StorageBreakdown,
  UsageBreakdown,
  UsageSummary,
  WindowQuery,
} from "./schema.ts";

export function windowMessage({
  since,
  until,
}: WindowQuery): MessageInitShape<typeof WindowSchema> {
  return {
    since: since === undefined ? undefined : toInstant(since),
    until: until === undefined ? undefined : toInstant(until),
  };
}

/** @throws Error on a message without limits, of which an unset one is unlimited */
export function publicQuotas(quotas: GetQuotasResponse): QuotaUsage {
  const { limits } = quotas;
  if (!limits) throw new Error("the answer holds no limits");
  return {
    max_sandboxes: limits.maxSandboxes ?? null,
    max_concurrent_ephemeral_running: limits.maxConcurrentEphemeralRunning ?? null,
    max_concurrent_persistent_running: limits.maxConcurrentPersistentRunning ?? null,
    max_vcpus_per_sandbox: limits.maxVcpusPerSandbox ?? null,
    max_memory_mib_per_sandbox: limits.maxMemoryMibPerSandbox ?? null,
    max_disk_size_mib_per_sandbox: limits.maxDiskSizeMibPerSandbox ?? null,
    max_uptime_minutes_per_sandbox: limits.maxUptimeMinutesPerSandbox ?? null,
    max_total_storage_gib: limits.maxTotalStorageGib ?? null,
    included_storage_gib: limits.includedStorageGib ?? null,
    included_disk_gib_hours: limits.includedDiskGibHours ?? null,
    included_vcpu_hours: limits.includedVcpuHours ?? null,
    included_memory_gib_hours: limits.includedMemoryGibHours ?? null,
    total_sandboxes: Number(quotas.totalSandboxes),
    concurrent_ephemeral_running: Number(quotas.concurrentEphemeralRunning),
    concurrent_persistent_running: Number(quotas.concurrentPersistentRunning),
    vcpu_hours_used: quotas.vcpuHoursUsed,
    memory_gib_hours_used: quotas.memoryGibHoursUsed,
    hard_cap: quotas.hardCap,
    pool_exhausted: quotas.poolExhausted,
    is_suspended: quotas.isSuspended,
  };
}

export function publicUsage(usage: GetUsageResponse): UsageSummary {
  return {
    period_start: toExactTime(usage.periodStart),
    period_end: toExactTime(usage.periodEnd),
    line_items: usage.lines.map(({ name, quantity, unit, amountCents }) => ({
      name,
      quantity,
      unit,
      amount_cents: Number(amountCents),
    })),
    total_cents: Number(usage.totalCents),
    projected_spend_cents: Number(usage.projectedSpendCents),
    daily: usage.daily.map(({ date, metric, quantity }) => ({
      date: toTime(date),
      metric,
      quantity,
    })),
    storage_gib: usage.storageGib ?? null,
  };
}

export function publicSandboxUsage(usage: ListSandboxUsageResponse): UsageBreakdown {
  return {
    rows: usage.rows.map((row) => ({
      sandbox_id: row.sandboxId,
      day: toTime(row.day),
      vcpu_seconds: row.vcpuSeconds,
      mem_mib_seconds: row.memMibSeconds,
      disk_mib_seconds: row.diskMibSeconds,
    })),
    sandboxes: usage.sandboxes.map(({ id, name, slug }) => ({ id, name, slug })),
  };
}

export function publicStorageUsage(usage: ListStorageUsageResponse): StorageBreakdown {
  return {
    rows: usage.rows.map((row) => ({
      volume_id: row.volumeId,
      day: toTime(row.day),
      mib_seconds: row.mibSeconds,
    })),
    volumes: usage.volumes.map(({ id, name }) => ({ id, name: name ?? null })),
  };
}
