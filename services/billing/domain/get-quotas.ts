import type { Caller } from "../../../runtime/caller.ts";
import type { BillingContext } from "../context.ts";
import { requireAccount } from "./account.ts";
import { monthStart } from "./calendar.ts";
import { addUse, NO_USE, type Use } from "./metrics.ts";
import type { Account } from "./plan.ts";
import { exhaustedPools } from "./pools.ts";

export interface Quotas {
  account: Account;
  /** Of this month, up to now; storage, which has no hours among the quotas, is left out. */
  used: Use;
  poolExhausted: boolean;
}

/** @throws ServiceError (ORG_NOT_FOUND) */
export async function getQuotas(
  ctx: BillingContext,
  { orgId }: Pick<Caller, "orgId">,
): Promise<Quotas> {
  const now = await ctx.store.now();
  const account = await requireAccount(ctx, orgId);
  const month = monthStart(now);
  const days = await ctx.store.sumRuns(orgId, now, {
    before: { since: month, until: month },
    within: { since: month, until: now },
  });
  const used = days.reduce((sum, { use }) => addUse(sum, use), NO_USE);
  const { plan, limits, exhaustedPool } = account;
  const usedUp = plan.hardCap && exhaustedPools(limits, month, used).length > 0;
  return { account, used, poolExhausted: exhaustedPool !== null || usedUp };
}
