import type * as pb from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { LimitsSchema, PricesSchema } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { formatPrice } from "../values.ts";
import { moment } from "./organization.ts";

/** Every limit by its public name; null: unlimited. */
export function limits(message: pb.Limits | undefined): Record<string, number | null> {
  // The fields of Limits are all of one type.
  const values = message as unknown as Record<string, number | undefined> | undefined;
  return Object.fromEntries(
    LimitsSchema.fields.map(({ name, localName }) => [name, values?.[localName] ?? null]),
  );
}

/** Decimal numbers in the plan's currency, as text: they are exact. */
export function prices(message: pb.Prices | undefined): Record<string, string> {
  // As above.
  const values = message as unknown as Record<string, bigint> | undefined;
  return Object.fromEntries(
    PricesSchema.fields.map(({ name, localName }) => [
      name,
      formatPrice(values?.[localName] ?? 0n),
    ]),
  );
}

export function plan(message: pb.Plan) {
  return {
    name: message.name,
    is_default: message.isDefault,
    hard_cap: message.hardCap,
    currency: message.currency,
    limits: limits(message.limits),
    prices: prices(message.prices),
  };
}

export function subscription(message: pb.Subscription) {
  return {
    plan: message.plan?.name ?? null,
    by_default: message.byDefault,
    overrides: Object.fromEntries(
      message.overrides.map(({ limit, value }) => [limit, value ?? null]),
    ),
  };
}

export function quotas(message: pb.GetQuotasResponse) {
  return {
    ...limits(message.limits),
    total_sandboxes: Number(message.totalSandboxes),
    concurrent_ephemeral_running: Number(message.concurrentEphemeralRunning),
    concurrent_persistent_running: Number(message.concurrentPersistentRunning),
    vcpu_hours_used: message.vcpuHoursUsed,
    memory_gib_hours_used: message.memoryGibHoursUsed,
    hard_cap: message.hardCap,
    pool_exhausted: message.poolExhausted,
    is_suspended: message.isSuspended,
  };
}

export function usage(message: pb.GetUsageResponse) {
  return {
    period_start: moment(message.periodStart),
    period_end: moment(message.periodEnd),
    currency: message.currency,
    line_items: message.lines.map(({ name, quantity, unit, amountCents }) => ({
      name,
      quantity,
      unit,
      amount_cents: Number(amountCents),
    })),
    total_cents: Number(message.totalCents),
    projected_spend_cents: Number(message.projectedSpendCents),
    daily: message.daily.map(({ date, metric, quantity }) => ({
      date: moment(date),
      metric,
      quantity,
    })),
    storage_gib: message.storageGib ?? null,
  };
}

export function sandboxUsage(message: pb.ListSandboxUsageResponse) {
  return {
    rows: message.rows.map((row) => ({
      sandbox_id: row.sandboxId,
      day: moment(row.day),
      vcpu_seconds: row.vcpuSeconds,
      mem_mib_seconds: row.memMibSeconds,
      disk_mib_seconds: row.diskMibSeconds,
    })),
    sandboxes: message.sandboxes.map(({ id, name, slug }) => ({ id, name, slug })),
  };
}

export function storageUsage(message: pb.ListStorageUsageResponse) {
  return {
    rows: message.rows.map((row) => ({
      volume_id: row.volumeId,
      day: moment(row.day),
      mib_seconds: row.mibSeconds,
    })),
    volumes: message.volumes.map(({ id, name }) => ({ id, name: name ?? null })),
  };
}
