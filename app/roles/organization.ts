import { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { requireDatabase, requirePort } from "../needs.ts";
import type { RoleOptions } from "../roles.ts";
import { startRpc } from "../rpc.ts";
import { requireSecrets } from "../secrets.ts";
import { keyFileOf, startOrganizations } from "../services.ts";

/**
 * The organization service alone; on an empty database it makes the first key.
 * @throws StartupError
 */
export async function startOrganizationRole(options: RoleOptions): Promise<string> {
  const { config } = options;
  requirePort(config);
  const secrets = requireSecrets(config);
  const { database, url } = await requireDatabase(options);
  const parts = { ...options, database, databaseUrl: url, secrets };
  const { service, bootstrap } = await startOrganizations(parts);
  const address = await startRpc({
    ...options,
    routes: (router) => router.service(OrganizationService, service),
    ready: options.needs.serves,
  });
  const key = bootstrap.generatedKey;
  const made = key ? `; API key ${key} (shown this once, kept in ${keyFileOf(config)})` : "";
  return `the organization service takes calls on ${address}${made}`;
}
