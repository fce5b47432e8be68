import type { ServiceImpl } from "@connectrpc/connect";
import type { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { type BootstrapOptions, type BootstrapResult, bootstrap } from "./bootstrap.ts";
import type { OrganizationContext } from "./context.ts";
import { type Retention, startHousekeeping } from "./housekeeping.ts";
import { createKeyWatch } from "./key-watch.ts";
import { createOrganizationService } from "./service.ts";
import { listenForKeys } from "./store/listen.ts";
import { createStore, type Database } from "./store.ts";

export interface OrganizationOptions
  extends BootstrapOptions,
    Retention,
    Pick<OrganizationContext, "sign"> {
  database: Database;
  /** For the one connection that listens. */
  databaseUrl: string;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/**
 * The organization service, with its housekeeping running; at the first start on an empty database it makes what a
 * person needs to begin.
 * @throws StartupError where the key file cannot be used
 */
export async function startOrganizationService(options: OrganizationOptions): Promise<{
  service: ServiceImpl<typeof OrganizationService>;
  bootstrap: BootstrapResult;
  stop(): Promise<void>;
}> {
  const { database, databaseUrl, sign, onError } = options;
  const store = createStore(database);
  const made = await bootstrap({ store }, options);
  const keyWatch = createKeyWatch((ears) => listenForKeys(databaseUrl, ears), onError);
  const housekeeping = startHousekeeping(store, options, onError);
  return {
    service: createOrganizationService({ store, sign, keyWatch }),
    bootstrap: made,
    stop: async () => {
      await Promise.all([keyWatch.stop(), housekeeping.stop()]);
    },
  };
}
