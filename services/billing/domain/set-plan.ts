import type { Actor } from "../../../runtime/caller.ts";
import { invalidRequest } from "../../../runtime/errors.ts";
import type { BillingContext } from "../context.ts";
import { keptLimits } from "./cost.ts";
import type { Plan } from "./plan.ts";

/**
 * Makes a plan, or replaces all of one. Each organization whose limits or prices change gets an event.
 * @returns the plan as it is kept
 * @throws ServiceError (INVALID_REQUEST) where no plan would be the default any more
 */
export async function setPlan(ctx: BillingContext, actor: Actor, plan: Plan): Promise<Plan> {
  const kept = { ...plan, limits: keptLimits(plan) };
  if (await ctx.store.setPlan(kept, actor)) return kept;
  const message = "cannot be taken from the default plan: make another one the default";
  throw invalidRequest([{ field: "plan.is_default", message }]);
}
