import type { Caller } from "../../../runtime/caller.ts";
import { type FieldFault, invalidRequest } from "../../../runtime/errors.ts";
import type { BillingContext } from "../context.ts";
import { requireAccount } from "./account.ts";
import { isLimitName, LIMIT_NAMES } from "./limits.ts";
import type { Account } from "./plan.ts";

export interface SetOverrides {
  /** Null: unlimited. */
  set: { limit: string; value: number | null }[];
  /** These are the plan's again. */
  clear: string[];
}

/** @throws ServiceError (INVALID_REQUEST, ORG_NOT_FOUND) */
export async function setOverrides(
  ctx: BillingContext,
  { orgId, actor }: Caller,
  { set, clear }: SetOverrides,
): Promise<Account> {
  const faults = faultsOf([
    ...set.map(({ limit }, i) => ({ field: `set[${i}].limit`, limit })),
    ...clear.map((limit, i) => ({ field: `clear[${i}]`, limit })),
  ]);
  if (faults.length > 0) throw invalidRequest(faults);
  await requireAccount(ctx, orgId);
  const limits = Object.fromEntries(set.map(({ limit, value }) => [limit, value]));
  await ctx.store.setOverrides(orgId, limits, clear, actor);
  return requireAccount(ctx, orgId);
}

function faultsOf(named: readonly { field: string; limit: string }[]): FieldFault[] {
  const seen = new Set<string>();
  return named.flatMap(({ field, limit }) => {
    if (!isLimitName(limit))
      return [{ field, message: `is no limit; there are ${LIMIT_NAMES.join(", ")}` }];
    if (seen.has(limit)) return [{ field, message: "names a limit that is named before" }];
    seen.add(limit);
    return [];
  });
}
