import type { ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { callerKey, requireCaller } from "../../runtime/rpc/context.ts";
import type { BillingContext } from "./context.ts";
import { requireAccount } from "./domain/account.ts";
import { assignPlan } from "./domain/assign-plan.ts";
import { getQuotas } from "./domain/get-quotas.ts";
import { getUsage } from "./domain/get-usage.ts";
import { listSandboxUsage, listStorageUsage } from "./domain/list-usage.ts";
import { OPERATOR } from "./domain/plan.ts";
import { setOverrides } from "./domain/set-overrides.ts";
import { setPlan } from "./domain/set-plan.ts";
import * as msg from "./messages.ts";

/** Every RPC of billing.v1: read the message, call the verb, write the message. */
export function createBillingService(ctx: BillingContext): ServiceImpl<typeof BillingService> {
  return {
    getQuotas: async (_request, call) =>
      msg.quotasToMessage(await getQuotas(ctx, requireCaller(call))),

    getUsage: async ({ window }, call) => {
      const given = msg.windowFromMessage(window);
      return msg.usageToMessage(await getUsage(ctx, requireCaller(call), given));
    },

    listSandboxUsage: async ({ window }, call) => {
      const given = msg.windowFromMessage(window);
      return msg.sandboxDaysToMessage(await listSandboxUsage(ctx, requireCaller(call), given));
    },

    listStorageUsage: async ({ window }, call) => {
      const given = msg.windowFromMessage(window);
      return msg.volumeDaysToMessage(await listStorageUsage(ctx, requireCaller(call), given));
    },

    listPlans: async () => ({ plans: (await ctx.store.listPlans()).map(msg.planToMessage) }),

    setPlan: async ({ plan }, call) => {
      const actor = call.values.get(callerKey)?.actor ?? OPERATOR;
      return { plan: msg.planToMessage(await setPlan(ctx, actor, msg.planFromMessage(plan))) };
    },

    assignPlan: async ({ plan }, call) => {
      const account = await assignPlan(ctx, requireCaller(call), plan);
      return { subscription: msg.subscriptionToMessage(account) };
    },

    getSubscription: async (_request, call) => {
      const account = await requireAccount(ctx, requireCaller(call).orgId);
      return { subscription: msg.subscriptionToMessage(account) };
    },

    setOverrides: async (request, call) => {
      const given = msg.overridesFromMessage(request);
      const account = await setOverrides(ctx, requireCaller(call), given);
      return { subscription: msg.subscriptionToMessage(account) };
    },
  };
}
