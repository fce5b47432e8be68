import type { Caller } from "../../../runtime/caller.ts";
import type { BillingContext } from "../context.ts";
import { requireAccount } from "./account.ts";
import type { Account } from "./plan.ts";
import { planNotFound } from "./refusals.ts";

/**
 * Puts the organization on a plan; empty: on none, so that it has the default one.
 * @throws ServiceError (ORG_NOT_FOUND, PLAN_NOT_FOUND)
 */
export async function assignPlan(
  ctx: BillingContext,
  { orgId, actor }: Caller,
  plan: string,
): Promise<Account> {
  await requireAccount(ctx, orgId);
  if (plan !== "" && !(await ctx.store.hasPlan(plan))) throw planNotFound(plan);
  await ctx.store.assignPlan(orgId, plan === "" ? null : plan, actor);
  return requireAccount(ctx, orgId);
}
