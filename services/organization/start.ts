import type { ServiceImpl } from "@connectrpc/connect";
import type { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { type BootstrapOptions, type BootstrapResult, bootstrap } from "./bootstrap.ts";
import { createOrganizationService } from "./service.ts";
import { createStore, type Database } from "./store.ts";

/**
 * The organization service; at the first start on an empty database it makes what a person needs to begin.
 * @throws StartupError where the key file cannot be used
 */
export async function startOrganizationService(
  options: BootstrapOptions & { database: Database },
): Promise<{
  service: Partial<ServiceImpl<typeof OrganizationService>>;
  bootstrap: BootstrapResult;
}> {
  const ctx = { store: createStore(options.database) };
  return { service: createOrganizationService(ctx), bootstrap: await bootstrap(ctx, options) };
}
