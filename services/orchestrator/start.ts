import type { Client, ServiceImpl } from "@connectrpc/connect";
import type { OrchestratorService } from "../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import type { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Metrics } from "../../runtime/metrics/metrics.ts";
import { seldom } from "../../runtime/seldom.ts";
import { knownCapacity } from "./capacity.ts";
import type { OrchestratorContext } from "./context.ts";
import type { VolumeStore } from "./engines/volume-store.ts";
import { LogHub } from "./logs/hub.ts";
import { RunWatch } from "./logs/run-watch.ts";
import { exposeOrchestrator } from "./metrics.ts";
import { startOrchestrator } from "./orchestrator.ts";
import { createReports } from "./reports.ts";
import { createOrchestratorService } from "./service.ts";
import { shareLooks } from "./share.ts";
import { listenForWork } from "./store/listen.ts";
import { createStore, type Database, type Store } from "./store.ts";
import { createVolumeCalls, type VolumeCalls } from "./volume-calls.ts";
import { createVolumeFileService } from "./volume-file-service.ts";
import { Changes } from "./volumes/changes.ts";
import { Measurer } from "./volumes/measurer.ts";
import { watchedEngine } from "./watched-engine.ts";

export interface OrchestratorOptions
  extends Pick<OrchestratorContext, "engine" | "log" | "unseal" | "limits"> {
  database: Database;
  /** For the one connection that listens. */
  databaseUrl: string;
  sandboxes: Client<typeof SandboxService>;
  volumes: Client<typeof VolumeService>;
  /** Keyed hash of what a request is, kept with its idempotency key. */
  hashRequest: (sha256: Uint8Array) => Uint8Array;
  metrics: Metrics;
}

/** The orchestrator service, seeking to lead its engine. */
export async function startOrchestratorService(options: OrchestratorOptions): Promise<{
  service: ServiceImpl<typeof OrchestratorService>;
  files: ServiceImpl<typeof VolumeFileService>;
  stop(): Promise<void>;
}> {
  const { database, databaseUrl, sandboxes, log, unseal, limits, metrics } = options;
  const engine = watchedEngine(options.engine, metrics);
  const store = createStore(database);
  const reportsOf = (epoch: bigint) => createReports(sandboxes, { engine: engine.name, epoch });
  const capacity = knownCapacity(engine);
  const volumeCalls = createVolumeCalls(options.volumes);
  const measurer = engine.volumes && createMeasurer(engine.volumes, store, volumeCalls);
  const ctx = { store, engine, capacity, reportsOf, volumeCalls, measurer, log, unseal, limits };
  const orchestrator = startOrchestrator(ctx);
  exposeOrchestrator(metrics, orchestrator.leading, store);
  const hub = new LogHub(engine);
  const blind = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "could not look at the runs whose logs are followed"),
  );
  const runs = new RunWatch(store.listRunStates, blind);
  const hint = () => {
    orchestrator.hint();
    runs.hint();
  };
  const complain = seldom((err, unsaid) =>
    log.warn({ err, ...unsaid }, "lost the connection that listens for work"),
  );
  const listener = listenForWork(databaseUrl, hint, complain);
  await orchestrator.ready;
  return {
    service: createOrchestratorService(store, {
      findLatestRun: store.findLatestRun,
      hub,
      runs,
      log,
    }),
    files: createVolumeFileService({
      // Somebody with many small files has many calls at once, all of one volume.
      store: { ...store, findVolume: shareLooks(store.findVolume) },
      volumes: engine.volumes,
      calls: volumeCalls,
      measurer,
      changes: new Changes(store.noteChanges),
      hashRequest: options.hashRequest,
      complain: seldom((err, unsaid) =>
        log.warn({ err, ...unsaid }, "the files of volumes cannot be reached"),
      ),
      log,
    }),
    stop: async () => {
      hub.close();
      await runs.stop();
      await listener.stop();
      await orchestrator.stop();
      await measurer?.stop();
    },
  };
}

function createMeasurer(volumes: VolumeStore, { readClock }: Store, calls: VolumeCalls): Measurer {
  return new Measurer({ volumes, readClock, calls });
}
