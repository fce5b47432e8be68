import type { BillingContext } from "../context.ts";
import type { Account } from "./plan.ts";
import { orgNotFound } from "./refusals.ts";

/**
 * What an organization has; also the answer of the verbs that change it.
 * @throws ServiceError (ORG_NOT_FOUND)
 */
export async function requireAccount(ctx: BillingContext, orgId: string): Promise<Account> {
  const account = await ctx.store.findAccount(orgId);
  if (!account) throw orgNotFound();
  return account;
}
