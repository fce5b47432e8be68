import type { Capacity, Engine } from "./engines/engine.ts";
import type { Reports } from "./reports.ts";
import type { Store } from "./store.ts";
import type { VolumeCalls } from "./volume-calls.ts";
import type { Measurer } from "./volumes/measurer.ts";

/** What the orchestrator works with. */
export interface OrchestratorContext {
  store: Store;
  engine: Engine;
  /** What the engine's host holds; undefined before it ever answered. */
  capacity: () => Capacity | undefined;
  /** The back arrow, under the lease of this epoch: what the engine did, told to the sandbox service. */
  reportsOf: (epoch: bigint) => Reports;
  /** What the sandbox service is asked and told of volumes. */
  volumeCalls: VolumeCalls;
  /** Undefined: the engine has no volumes. */
  measurer: Measurer | undefined;
  log: Log;
  /** Opens what the sandbox service sealed; `context` is the sandbox's id. */
  unseal: (sealed: Uint8Array, context: string) => Uint8Array;
  limits: {
    /** How long a start may wait to be placed. */
    queueTimeoutSecs: number;
    /** How long a machine may take to come up once it is placed. */
    startTimeoutSecs: number;
    /** How long a stop may take before the run is failed. */
    stopTimeoutSecs: number;
    /** How long a machine may take to end before it is killed. */
    stopGraceMs: number;
    /** How long a machine of a sandbox that does not exist is kept. */
    orphanDelaySecs: number;
    /** How often a volume that changes is measured. */
    volumeMeasureSecs: number;
    /** How much may be placed for each vCPU, and each MiB of memory, that the host has. */
    cpuOvercommit: number;
    memoryOvercommit: number;
  };
}

/** The same while it leads. */
export interface LeadingContext extends OrchestratorContext {
  /** Of the lease that it leads by. */
  epoch: bigint;
  reports: Reports;
}

/** The part of a pino logger that is used here. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
