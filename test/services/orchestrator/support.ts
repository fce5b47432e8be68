import { createHmac } from "node:crypto";
import { type Client, createClient, type ServiceImpl } from "@connectrpc/connect";
import pino from "pino";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import { OrchestratorService } from "../../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import type { VolumeFileService } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { SandboxService } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { VolumeService } from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { Metrics } from "../../../runtime/metrics/metrics.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import type { OrchestratorContext } from "../../../services/orchestrator/context.ts";
import {
  createSimulatedEngine,
  type SimulatedEngine,
  type SimulatedOptions,
} from "../../../services/orchestrator/engines/simulated.ts";
import { startOrchestratorService } from "../../../services/orchestrator/start.ts";
import { createStore as createWorkStore } from "../../../services/orchestrator/store.ts";
import { createChanges } from "../../../services/sandbox/changes.ts";
import type { SandboxContext } from "../../../services/sandbox/context.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import type { Sandbox } from "../../../services/sandbox/domain/sandbox.ts";
import { createHint } from "../../../services/sandbox/hint.ts";
import { createSandboxService } from "../../../services/sandbox/service.ts";
import { createStore } from "../../../services/sandbox/store.ts";
import { createVolumeService } from "../../../services/sandbox/volume-service.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { createInput, newCaller } from "../sandbox/support.ts";

const quiet = pino({ level: "silent" });

/** The sandbox service and an orchestrator with a simulated engine, on one database. */
export interface System {
  ctx: SandboxContext;
  caller: Caller;
  database: Database;
  engine: SimulatedEngine;
  /** The first orchestrator's service. */
  orchestrators: Client<typeof OrchestratorService>;
  create(spec?: Parameters<typeof createInput>[0], name?: string): Promise<Sandbox>;
  get(id: string): Promise<Sandbox>;
  sandboxes: Client<typeof SandboxService>;
  volumes: Client<typeof VolumeService>;
  /** The first orchestrator's. */
  files: ServiceImpl<typeof VolumeFileService>;
  /** Stops the first orchestrator. */
  stopFirst(): Promise<void>;
  /** Holds up whatever the first orchestrator asks of the database and of services, until it is told to go on. */
  freezeFirst(): () => void;
  /** One more orchestrator, with the engine given. */
  orchestrate(
    engine: SimulatedEngine,
  ): Promise<{ files: ServiceImpl<typeof VolumeFileService>; stop(): Promise<void> }>;
  close(): Promise<void>;
}

export interface SystemOptions {
  engine?: Partial<SimulatedOptions>;
  limits?: Partial<OrchestratorContext["limits"]>;
  /** What opens sealed credentials; else they are not sealed. */
  unseal?: (sealed: Uint8Array) => Uint8Array;
  /** A migrated database; else one of its own. */
  at?: TestDatabase;
}

export async function createSystem(options: SystemOptions = {}): Promise<System> {
  const { engine: given, limits, unseal = (sealed: Uint8Array) => sealed } = options;
  const test = options.at ?? (await createTestDatabase());
  const database = openDatabase(test.url, { poolSize: 10 });
  const store = createStore(database);
  const ctx: SandboxContext = {
    store,
    changes: createChanges(),
    hint: createHint(store.notify, () => {}),
    seal: (plaintext) => plaintext,
    sign: (data) => createHmac("sha256", "test").update(data).digest(),
    hashRequest: (sha256) => createHmac("sha256", "test").update(sha256).digest(),
    lingerSecs: 30,
  };
  const connect = (gate: Gate) => {
    const transport = createInProcessTransport(
      (router) =>
        router
          .service(SandboxService, createSandboxService(ctx))
          .service(VolumeService, createVolumeService(ctx)),
      {
        log: quiet,
        freeze: true,
        interceptors: [(next) => async (call) => gate.open.then(() => next(call))],
      },
    );
    return {
      sandboxes: createClient(SandboxService, transport),
      volumes: createClient(VolumeService, transport),
    };
  };
  const running: { stop(): Promise<void> }[] = [];
  const orchestrate = async (engine: SimulatedEngine, gate: Gate = { open: Promise.resolve() }) => {
    const orchestrator = await startOrchestratorService({
      database: gated(database, gate),
      databaseUrl: test.url,
      ...connect(gate),
      hashRequest: ctx.hashRequest,
      engine,
      log: quiet,
      unseal,
      metrics: new Metrics(),
      limits: {
        queueTimeoutSecs: 60,
        startTimeoutSecs: 60,
        stopTimeoutSecs: 60,
        stopGraceMs: 1_000,
        orphanDelaySecs: 600,
        volumeMeasureSecs: 60,
        cpuOvercommit: 1,
        memoryOvercommit: 1,
        ...limits,
      },
    });
    running.push(orchestrator);
    return orchestrator;
  };
  const engine = createSimulatedEngine({ features: FEATURES, ...given });
  const gate: Gate = { open: Promise.resolve() };
  const first = await orchestrate(engine, gate);
  const caller = newCaller();
  const orchestratorTransport = createInProcessTransport(
    (router) => router.service(OrchestratorService, first.service),
    { log: quiet, freeze: true },
  );
  return {
    ctx,
    caller,
    database,
    engine,
    ...connect({ open: Promise.resolve() }),
    files: first.files,
    freezeFirst: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate.open = promise;
      return resolve;
    },
    orchestrators: createClient(OrchestratorService, orchestratorTransport),
    stopFirst: async () => {
      running.splice(running.indexOf(first), 1);
      await first.stop();
    },
    orchestrate: (heir) => orchestrate(heir),
    create: (spec, name = "") =>
      createSandbox(ctx, caller, createInput(spec, { name, start: true })),
    get: (id) => change.getSandbox(ctx, caller, { id }),
    close: async () => {
      for (const orchestrator of running) await orchestrator.stop();
      await database.close();
      await test.close();
    },
  };
}

/** What a frozen process waits for. */
interface Gate {
  open: Promise<void>;
}

function gated(database: Database, gate: Gate): Database {
  const query: Database["query"] = async (sql, ...values) => {
    await gate.open;
    return database.query(sql, ...values);
  };
  return { ...database, query };
}

/** The machines that the database believes to be up. */
export const believed = (database: Database) => createWorkStore(database).listBelieved();
