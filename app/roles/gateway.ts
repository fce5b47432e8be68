import { BillingService } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { OrchestratorService } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { PIECE } from "../../runtime/rpc/pieces.ts";
import { startGateway } from "../gateway.ts";
import { leads } from "../readiness.ts";
import { isServing, provideRemote, requireUrls } from "../remotes.ts";
import type { RoleOptions } from "../roles.ts";

/**
 * The public API, in front of services in other processes; touches no database.
 * @throws StartupError
 */
export async function startGatewayRole(options: RoleOptions): Promise<string> {
  const { config, log, lifecycle, needs, metrics } = options;
  requireUrls(config, ["sandbox", "organization", "orchestrator", "billing"]);
  const sandbox = await provideRemote(options, "sandbox", SandboxService);
  const organization = await provideRemote(options, "organization", OrganizationService);
  const orchestrator = await provideRemote(options, "orchestrator", OrchestratorService);
  const billing = await provideRemote(options, "billing", BillingService);
  needs.ask("sandbox", () => isServing(sandbox));
  needs.ask("organization", () => isServing(organization));
  needs.ask("billing", () => isServing(billing));
  needs.ask("orchestrator", () => leads(orchestrator.client));
  const clients = {
    sandboxes: sandbox.client,
    volumes: sandbox.beside(VolumeService),
    organizations: organization.client,
    orchestrators: orchestrator.client,
    files: orchestrator.beside(VolumeFileService),
    billing: billing.client,
  };
  const url = await startGateway(
    {
      clients,
      config: { ...config.gateway, pieceBytes: PIECE },
      log,
      metrics,
      readiness: needs.look,
    },
    config.gateway,
    lifecycle,
  );
  return `the gateway takes requests on ${url}`;
}
