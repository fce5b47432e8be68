import { operation } from "../../http/operation.ts";
import {
  exampleQuotas,
  exampleSandboxUsage,
  exampleStorageUsage,
  exampleUsage,
} from "./examples.ts";
import {
  QuotaUsage,
  StorageBreakdown,
  UsageBreakdown,
  UsageSummary,
  WindowQuery,
} from "./schema.ts";

export const getQuotas = operation({
  id: "getQuotas",
  tag: "Quotas",
  summary: "Read limits and what is used of them",
  description: "Limits are the organization's own, else its plan's.",
  response: QuotaUsage,
  example: exampleQuotas,
  errors: ["org_not_found"],
});

export const getUsage = operation({
  id: "getUsage",
  tag: "Usage",
  summary: "Sum up usage and its cost",
  description: "What runs is counted up to now. Costs are estimates by the plan's prices.",
  query: WindowQuery,
  response: UsageSummary,
  example: exampleUsage,
  errors: ["org_not_found"],
});

export const listSandboxUsage = operation({
  id: "listSandboxUsage",
  tag: "Usage",
  summary: "List usage by sandbox and day",
  description:
    "A run that crosses midnight (UTC) is split. Destroyed sandboxes keep their rows, without a name.",
  query: WindowQuery,
  response: UsageBreakdown,
  example: exampleSandboxUsage,
});

export const listStorageUsage = operation({
  id: "listStorageUsage",
  tag: "Usage",
  summary: "List usage by volume and day",
  description: "Deleted volumes keep their rows, without a name.",
  query: WindowQuery,
  response: StorageBreakdown,
  example: exampleStorageUsage,
});
