import { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { requireDatabase, requirePort } from "../needs.ts";
import { provideRemote } from "../remotes.ts";
import type { RoleOptions } from "../roles.ts";
import { startRpc } from "../rpc.ts";
import { startBilling } from "../services.ts";

/**
 * The billing service alone.
 * @throws StartupError
 */
export async function startBillingRole(options: RoleOptions): Promise<string> {
  requirePort(options.config);
  const sandbox = await provideRemote(options, "sandbox", SandboxService);
  const { database } = await requireDatabase(options);
  const { service } = await startBilling({ ...options, database }, sandbox.client);
  const address = await startRpc({
    ...options,
    routes: (router) => router.service(BillingService, service),
    ready: options.needs.serves,
  });
  return `the billing service takes calls on ${address}`;
}
