import type { SandboxSpec } from "./spec.ts";

export const STATUSES = [
  "created",
  "starting",
  "running",
  "stopping",
  "stopped",
  "failed",
] as const;
export type Status = (typeof STATUSES)[number];

export type StatusReason = "scheduling" | "insufficient_capacity";

/** A sandbox as stored; see proto/sandbox/v1/sandbox.proto for what each field means. */
export interface Sandbox {
  id: string;
  orgId: string;
  name: string;
  slug: string;
  status: Status;
  statusReason: StatusReason | null;
  ephemeral: boolean;
  generation: number;
  createdAt: Date;
  startedAt: Date | null;
  stoppedAt: Date | null;
  lastFailureMessage: string | null;
  spec: SandboxSpec;
}

/** The same for a reader who has the spec already, or does not want it. */
export type SeenSandbox = Omit<Sandbox, "spec"> & { spec: SandboxSpec | null };

/** A sandbox of the caller's organization, by id or by name. */
export type SandboxKey = { id: string } | { name: string };

/** A change of status, as watchers see it. */
export interface Change {
  sandboxId: string;
  status: Status;
  generation: number;
  destroyed: boolean;
}

/** The lease of an engine, as the orchestrator that reports holds it. */
export interface Lease {
  engine: string;
  /** Rises with each new holder. */
  epoch: bigint;
}
