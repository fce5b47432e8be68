import type { Capacity, Engine } from "./engines/engine.ts";
import type { Reports } from "./reports.ts";
import type { Store } from "./store.ts";

/** What the orchestrator works with. */
export interface OrchestratorContext {
  store: Store;
  engine: Engine;
  /** What the engine's host holds; undefined before it ever answered. */
  capacity: () => Capacity | undefined;
  /** The back arrow: what the engine did, told to the sandbox service. */
  reports: Reports;
  log: Log;
  /** Opens what the sandbox service sealed; `context` is the sandbox's id. */
  unseal: (sealed: Uint8Array, context: string) => Uint8Array;
  limits: {
    /** How long a start may wait for room. */
    queueTimeoutSecs: number;
    /** How long a machine may take to come up once it is placed. */
    startTimeoutSecs: number;
    /** How long a machine may take to end before it is killed. */
    stopGraceMs: number;
    /** How long a machine of a sandbox that does not exist is kept. */
    orphanDelaySecs: number;
  };
}

/** The part of a pino logger that is used here. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
