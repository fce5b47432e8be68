import type { Client } from "@connectrpc/connect";
import type { BillingService } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import { type Call, type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { getQuotas, getUsage, listSandboxUsage, listStorageUsage } from "./operations.ts";
import type { WindowQuery } from "./schema.ts";
import {
  publicQuotas,
  publicSandboxUsage,
  publicStorageUsage,
  publicUsage,
  windowMessage,
} from "./translate.ts";

export interface BillingDeps {
  billing: Client<typeof BillingService>;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

type WindowCall = Call<unknown, WindowQuery>;

export function billingRoutes({ billing, rpcTimeoutMs }: BillingDeps): Route[] {
  const optionsOf = ({ caller, signal }: Call) => callFor(caller, rpcTimeoutMs, signal);
  const windowOf = ({ query }: WindowCall) => ({ window: windowMessage(query) });
  return [
    route("GET", "/v1/quotas", getQuotas, async (call) =>
      publicQuotas(await billing.getQuotas({}, optionsOf(call))),
    ),
    route("GET", "/v1/billing/usage", getUsage, async (call) =>
      publicUsage(await billing.getUsage(windowOf(call), optionsOf(call))),
    ),
    route("GET", "/v1/billing/usage/sandbox", listSandboxUsage, async (call) =>
      publicSandboxUsage(await billing.listSandboxUsage(windowOf(call), optionsOf(call))),
    ),
    route("GET", "/v1/billing/usage/storage", listStorageUsage, async (call) =>
      publicStorageUsage(await billing.listStorageUsage(windowOf(call), optionsOf(call))),
    ),
  ];
}
