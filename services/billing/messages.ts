import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import * as pb from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { DAY_MS } from "./domain/calendar.ts";
import type { Quotas } from "./domain/get-quotas.ts";
import type { Usage } from "./domain/get-usage.ts";
import { LIMIT_NAMES, type Limits } from "./domain/limits.ts";
import type { SandboxDay, VolumeDay } from "./domain/list-usage.ts";
import { divided, GIB, inUnits, METRICS, MIB, UNIT_NAMES } from "./domain/metrics.ts";
import type { Account, Plan } from "./domain/plan.ts";
import type { SetOverrides } from "./domain/set-overrides.ts";
import type { GivenWindow } from "./domain/window.ts";

// What are exact integers inside become doubles here, and nowhere else.

export function windowFromMessage(message: pb.Window | undefined): GivenWindow {
  return { since: msOf(message?.since), until: msOf(message?.until) };
}

function msOf(at: Timestamp | undefined): number | undefined {
  return at && Number(at.seconds) * 1_000 + Math.floor(at.nanos / 1_000_000);
}

const midnight = (day: number) => timestampFromMs(day * DAY_MS);
const seconds = (ms: bigint) => divided(ms, 1_000n);

/** `max_sandboxes` as the message spells it. */
function fieldOf(limit: string): string {
  return limit.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function limitsToMessage(limits: Limits): pb.Limits {
  const set = LIMIT_NAMES.flatMap((name) => {
    const value = limits[name];
    return typeof value === "number" ? [[fieldOf(name), value] as const] : [];
  });
  const init: MessageInitShape<typeof pb.LimitsSchema> = Object.fromEntries(set);
  return create(pb.LimitsSchema, init);
}

function limitsFromMessage(message: pb.Limits | undefined): Limits {
  const fields: Partial<Record<string, unknown>> = { ...message };
  const set = LIMIT_NAMES.flatMap((name) => {
    const value = fields[fieldOf(name)];
    return typeof value === "number" ? [[name, value] as const] : [];
  });
  return Object.fromEntries(set);
}

export function planFromMessage(message: pb.Plan | undefined): Plan {
  const { name, limits, prices, currency, hardCap, isDefault } = message ?? create(pb.PlanSchema);
  return {
    name,
    limits: limitsFromMessage(limits),
    prices: {
      vcpu: prices?.vcpuHour ?? 0n,
      memory: prices?.memoryGibHour ?? 0n,
      disk: prices?.diskGibHour ?? 0n,
      storage: prices?.storageGibHour ?? 0n,
    },
    currency,
    hardCap,
    isDefault,
  };
}

export function planToMessage(plan: Plan): pb.Plan {
  const { name, limits, prices, currency, hardCap, isDefault } = plan;
  return create(pb.PlanSchema, {
    name,
    limits: limitsToMessage(limits),
    prices: {
      vcpuHour: prices.vcpu,
      memoryGibHour: prices.memory,
      diskGibHour: prices.disk,
      storageGibHour: prices.storage,
    },
    currency,
    hardCap,
    isDefault,
  });
}

export function subscriptionToMessage({ plan, byDefault, overrides }: Account): pb.Subscription {
  const named = LIMIT_NAMES.flatMap((limit) => {
    const value = overrides[limit];
    if (value === undefined) return [];
    return [value === null ? { limit } : { limit, value }];
  });
  return create(pb.SubscriptionSchema, { plan: planToMessage(plan), byDefault, overrides: named });
}

export function overridesFromMessage({ set, clear }: pb.SetOverridesRequest): SetOverrides {
  return { set: set.map(({ limit, value }) => ({ limit, value: value ?? null })), clear };
}

export function quotasToMessage({ account, used, poolExhausted }: Quotas): pb.GetQuotasResponse {
  return create(pb.GetQuotasResponseSchema, {
    limits: limitsToMessage(account.limits),
    totalSandboxes: BigInt(account.totalSandboxes),
    concurrentEphemeralRunning: BigInt(account.ephemeralRunning),
    concurrentPersistentRunning: BigInt(account.persistentRunning),
    vcpuHoursUsed: inUnits("vcpu", used.vcpu),
    memoryGibHoursUsed: inUnits("memory", used.memory),
    hardCap: account.plan.hardCap,
    poolExhausted,
    isSuspended: account.isSuspended,
  });
}

/** @param asked whose ends are told as they were given, however fine */
export function usageToMessage(usage: Usage, asked: pb.Window | undefined): pb.GetUsageResponse {
  const { window, lines, days, storedBytes, totalCents, projectedCents, currency } = usage;
  return create(pb.GetUsageResponseSchema, {
    periodStart: asked?.since ?? timestampFromMs(window.since),
    periodEnd: asked?.until ?? timestampFromMs(window.until),
    lines: lines.map(({ metric, quantity, amountCents }) => ({
      name: metric,
      quantity: inUnits(metric, quantity),
      unit: UNIT_NAMES[metric],
      amountCents,
    })),
    totalCents,
    projectedSpendCents: projectedCents,
    daily: days.flatMap(({ day, use }) =>
      METRICS.filter((metric) => use[metric] > 0n).map((metric) => ({
        date: midnight(day),
        metric,
        quantity: inUnits(metric, use[metric]),
      })),
    ),
    ...(storedBytes !== undefined && { storageGib: divided(storedBytes, GIB) }),
    currency,
  });
}

export function sandboxDaysToMessage(days: readonly SandboxDay[]): pb.ListSandboxUsageResponse {
  const living = new Map(
    days.flatMap(({ sandboxId: id, identity }) => (identity ? [[id, { id, ...identity }]] : [])),
  );
  return create(pb.ListSandboxUsageResponseSchema, {
    rows: days.map(({ sandboxId, day, vcpu, memory, disk }) => ({
      sandboxId,
      day: midnight(day),
      vcpuSeconds: seconds(vcpu),
      memMibSeconds: seconds(memory),
      diskMibSeconds: seconds(disk),
    })),
    sandboxes: [...living.values()],
  });
}

export function volumeDaysToMessage(days: readonly VolumeDay[]): pb.ListStorageUsageResponse {
  const living = new Map(
    days.flatMap(({ volumeId: id, identity }) =>
      identity ? [[id, identity.name === null ? { id } : { id, name: identity.name }]] : [],
    ),
  );
  return create(pb.ListStorageUsageResponseSchema, {
    rows: days.map(({ volumeId, day, held }) => ({
      volumeId,
      day: midnight(day),
      mibSeconds: divided(held, MIB * 1_000n),
    })),
    volumes: [...living.values()],
  });
}
