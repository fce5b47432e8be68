import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { requireDatabase, requirePort } from "../needs.ts";
import type { RoleOptions } from "../roles.ts";
import { startRpc } from "../rpc.ts";
import { requireSecrets } from "../secrets.ts";
import { startSandboxes } from "../services.ts";

/**
 * The sandbox service alone.
 * @throws StartupError
 */
export async function startSandboxRole(options: RoleOptions): Promise<string> {
  const { config } = options;
  requirePort(config);
  const secrets = requireSecrets(config);
  const { database, url } = await requireDatabase(options);
  const { service, volumes } = await startSandboxes({
    ...options,
    database,
    databaseUrl: url,
    secrets,
  });
  const address = await startRpc({
    ...options,
    routes: (router) => router.service(SandboxService, service).service(VolumeService, volumes),
    ready: options.needs.serves,
  });
  return `the sandbox service takes calls on ${address}`;
}
