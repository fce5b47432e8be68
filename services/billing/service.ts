import type { ServiceImpl } from "@connectrpc/connect";
import type { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import type { BillingContext } from "./context.ts";

/** Every RPC of billing.v1: read the message, call the verb, write the message. */
export function createBillingService(
  _ctx: BillingContext,
): Partial<ServiceImpl<typeof BillingService>> {
  return {};
}
