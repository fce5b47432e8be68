import { OrchestratorService } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { policiesOf, warningOf } from "../banner.ts";
import { type ChosenEngine, chooseEngine, EngineAway } from "../engine.ts";
import { requireDatabase, requirePort } from "../needs.ts";
import { untilThere } from "../patience.ts";
import { isServing, provideRemote } from "../remotes.ts";
import type { RoleOptions } from "../roles.ts";
import { startRpc } from "../rpc.ts";
import { requireSecrets } from "../secrets.ts";
import { startOrchestrators } from "../services.ts";

/**
 * An orchestrator alone, with the engine that runs the machines; it leads or stands by.
 * @param choose which engine; for tests that bring their own
 * @throws StartupError
 */
export async function startOrchestratorRole(
  options: RoleOptions,
  choose: typeof chooseEngine = chooseEngine,
): Promise<string> {
  const { config, log, needs } = options;
  requirePort(config);
  needs.expect("database", "schema", "sandbox", "engine");
  const sandbox = await provideRemote(options, "sandbox", SandboxService);
  needs.ask("sandbox", () => isServing(sandbox));
  const secrets = requireSecrets(config);
  const { database, url } = await requireDatabase(options);
  const chosen = await untilThere(
    "the engine",
    () => choose(config.engine, database, log),
    (error) => error instanceof EngineAway,
    options,
  );
  needs.ask("engine", async () => true);
  const parts = { ...options, database, databaseUrl: url, secrets };
  const { service, files } = await startOrchestrators(parts, chosen, {
    sandboxes: sandbox.client,
    volumes: sandbox.beside(VolumeService),
  });
  const address = await startRpc({
    ...options,
    routes: (router) =>
      router.service(OrchestratorService, service).service(VolumeFileService, files),
    ready: needs.serves,
  });
  return orchestratorReady(address, chosen);
}

/** What a person at its terminal has to know, with the warnings that the whole program gives. */
export function orchestratorReady(address: string | undefined, chosen: ChosenEngine): string {
  const policies = policiesOf(chosen);
  const network = policies ? `; network ${policies}` : "";
  const engine = `engine ${chosen.engine.name}: ${chosen.why}${network}`;
  return [`the orchestrator takes calls on ${address}; ${engine}`, ...warningOf(chosen)].join("\n");
}
