import type { Database } from "../../../prisma/database.ts";
import type { Limits } from "../domain/limits.ts";
import type { Account } from "../domain/plan.ts";
import { PLAN_COLUMNS, type PlanRow, toPlan } from "./plans.ts";

type AccountRow = PlanRow &
  Omit<Account, "plan" | "limits" | "exhaustedPool"> & {
    resolved: Limits & { exhausted_pool: string | null };
  };

const ACCOUNT = `
SELECT ${PLAN_COLUMNS}, o.suspended_at IS NOT NULL AS "isSuspended", s.org_id IS NULL AS "byDefault",
       coalesce(v.limits, '{}') AS overrides, billing.limits(o.id) AS resolved,
       coalesce(c.total_sandboxes, 0) AS "totalSandboxes", coalesce(c.ephemeral_running, 0) AS "ephemeralRunning",
       coalesce(c.persistent_running, 0) AS "persistentRunning"
FROM organization.organizations o
JOIN billing.plans p ON p.name = billing.plan_of(o.id)
LEFT JOIN billing.subscriptions s ON s.org_id = o.id
LEFT JOIN billing.overrides v ON v.org_id = o.id
LEFT JOIN sandbox.places c ON c.org_id = o.id
WHERE o.id = $1::uuid`;

/** What an organization has, and what it takes of it. */
export async function findAccount(database: Database, orgId: string): Promise<Account | undefined> {
  const [row] = await database.query<AccountRow>(ACCOUNT, orgId);
  if (!row) return undefined;
  const { isSuspended, byDefault, overrides, resolved } = row;
  const { totalSandboxes, ephemeralRunning, persistentRunning } = row;
  const { exhausted_pool: exhaustedPool, ...limits } = resolved;
  const places = { totalSandboxes, ephemeralRunning, persistentRunning };
  return { isSuspended, byDefault, overrides, limits, exhaustedPool, plan: toPlan(row), ...places };
}
