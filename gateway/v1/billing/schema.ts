import Type, { type Static } from "typebox";
import { nullable } from "../../validation/schema.ts";
import { boundsFault, boundsOf } from "../times.ts";

const uuid = () => Type.String({ format: "uuid" });
const int64 = (description: string) => Type.Integer({ format: "int64", description });
const double = (description?: string) =>
  Type.Number({ format: "double", ...(description ? { description } : {}) });
const time = (description?: string) =>
  Type.String({ format: "date-time", ...(description ? { description } : {}) });
const limit = (description: string) =>
  nullable(Type.Integer({ format: "int32", minimum: 0 }), { description });

export const QuotaUsage = Type.Object(
  {
    max_sandboxes: limit("Sandboxes that exist."),
    max_concurrent_ephemeral_running: limit("Ephemeral sandboxes starting or running."),
    max_concurrent_persistent_running: limit("Other sandboxes starting or running."),
    max_vcpus_per_sandbox: limit("Virtual CPUs of a sandbox."),
    max_memory_mib_per_sandbox: limit("Memory of a sandbox in MiB."),
    max_disk_size_mib_per_sandbox: limit("Writable disk of a sandbox in MiB."),
    max_uptime_minutes_per_sandbox: limit("Minutes of a run."),
    max_total_storage_gib: limit("What volumes may hold in GiB."),
    included_storage_gib: limit("Storage that a month includes, in GiB."),
    included_disk_gib_hours: limit("Writable disk that a month includes."),
    included_vcpu_hours: limit("vCPU hours that a month includes."),
    included_memory_gib_hours: limit("Memory that a month includes."),
    total_sandboxes: int64("Sandboxes that exist."),
    concurrent_ephemeral_running: int64("Ephemeral sandboxes starting or running."),
    concurrent_persistent_running: int64("Other sandboxes starting or running."),
    vcpu_hours_used: double("In this calendar month (UTC), up to now."),
    memory_gib_hours_used: double("In this calendar month (UTC), up to now."),
    hard_cap: Type.Boolean({ description: "Whether the included pools are walls." }),
    pool_exhausted: Type.Boolean({
      description:
        "Whether a pool that is a wall is used up: nothing starts, what runs is stopped.",
    }),
    is_suspended: Type.Boolean(),
  },
  {
    title: "QuotaUsage",
    description: "Limits, of which null means unlimited, and what is used of them.",
  },
);
export type QuotaUsage = Static<typeof QuotaUsage>;

export const UsageSummary = Type.Object(
  {
    period_start: time(),
    period_end: time(),
    line_items: Type.Array(
      Type.Object(
        {
          name: Type.String({ description: "`vcpu`, `memory`, `disk` or `storage`." }),
          quantity: double(),
          unit: Type.String({ description: "`vcpu_hours` or `gib_hours`." }),
          amount_cents: int64("Estimated by the plan's prices, rounded once."),
        },
        { title: "UsageLineItem" },
      ),
    ),
    total_cents: int64("The sum of the lines."),
    projected_spend_cents: int64(
      "The total, linearly extrapolated to the end of the period; the total itself where there is nothing to extrapolate.",
    ),
    daily: Type.Array(
      Type.Object(
        {
          date: time("UTC midnight."),
          metric: Type.String({ description: "The name of a line." }),
          quantity: double("In the line's unit."),
        },
        { title: "UsageDailyPoint" },
      ),
    ),
    storage_gib: nullable(double(), {
      description: "What volumes held when it was last measured; null where nothing was.",
    }),
  },
  { title: "UsageSummary", description: "Quantities of a period and what they cost." },
);
export type UsageSummary = Static<typeof UsageSummary>;

export const UsageBreakdown = Type.Object(
  {
    rows: Type.Array(
      Type.Object(
        {
          sandbox_id: uuid(),
          day: time("UTC midnight."),
          vcpu_seconds: double(),
          mem_mib_seconds: double(),
          disk_mib_seconds: double(),
        },
        { title: "SandboxDailyUsage" },
      ),
      { description: "By day, then by sandbox." },
    ),
    sandboxes: Type.Array(
      Type.Object(
        { id: uuid(), name: Type.String(), slug: Type.String() },
        { title: "SandboxIdentity" },
      ),
      { description: "Those of the rows that still exist." },
    ),
  },
  { title: "UsageBreakdown" },
);
export type UsageBreakdown = Static<typeof UsageBreakdown>;

export const StorageBreakdown = Type.Object(
  {
    rows: Type.Array(
      Type.Object(
        { volume_id: uuid(), day: time("UTC midnight."), mib_seconds: double() },
        { title: "StorageDailyUsage" },
      ),
      { description: "By day, then by volume." },
    ),
    volumes: Type.Array(
      Type.Object(
        { id: uuid(), name: nullable(Type.String(), { description: "Null: the host volume." }) },
        { title: "VolumeIdentity" },
      ),
      { description: "Those of the rows that still exist." },
    ),
  },
  { title: "StorageBreakdown" },
);
export type StorageBreakdown = Static<typeof StorageBreakdown>;

export const WindowQuery = Type.Object(
  boundsOf(
    "From when; by default the beginning of this calendar month (UTC).",
    "To when; by default now. At most 92 days after `since`.",
  ),
  { rule: boundsFault },
);
export type WindowQuery = Static<typeof WindowQuery>;
