import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { SandboxStatusReason } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import {
  type ReportRequestSchema,
  RunEndCause,
  type SandboxService,
} from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { End } from "./domain/end.ts";
import type { RunKey } from "./engines/engine.ts";

/** The sandbox service's ear; each answers whether the report changed anything. */
export type Reports = ReturnType<typeof createReports>;

/** The lease under which it is reported; once another holds it nothing changes any more. */
export interface HeldLease {
  engine: string;
  epoch: bigint;
}

type Observation = NonNullable<MessageInitShape<typeof ReportRequestSchema>["observation"]>;

const CAUSES = {
  exited: RunEndCause.EXITED,
  crashed: RunEndCause.CRASHED,
  out_of_memory: RunEndCause.OUT_OF_MEMORY,
  lost: RunEndCause.LOST,
  start_failed: RunEndCause.START_FAILED,
  stopped: RunEndCause.STOPPED,
  limit_reached: RunEndCause.LIMIT_REACHED,
  stop_failed: RunEndCause.STOP_FAILED,
} as const;

const REASONS = {
  scheduling: SandboxStatusReason.SCHEDULING,
  insufficient_capacity: SandboxStatusReason.INSUFFICIENT_CAPACITY,
} as const;

const TIMEOUT_MS = 15_000;

export function createReports(sandboxes: Client<typeof SandboxService>, lease: HeldLease) {
  const send = async ({ sandboxId, generation }: RunKey, observation: Observation) => {
    const request = { sandboxId, generation, lease, observation };
    const { applied } = await sandboxes.report(request, { timeoutMs: TIMEOUT_MS });
    return applied;
  };
  return {
    placed: (run: RunKey) => send(run, { case: "placed", value: {} }),
    waiting: (run: RunKey, reason: keyof typeof REASONS) =>
      send(run, { case: "waiting", value: { reason: REASONS[reason] } }),
    running: (run: RunKey, startedAt: Date) =>
      send(run, { case: "running", value: { startedAt: timestampFromDate(startedAt) } }),
    workloadEnded: (run: RunKey, endedAt: Date) =>
      send(run, { case: "workloadEnded", value: { endedAt: timestampFromDate(endedAt) } }),
    ended: (run: RunKey, { endedAt, cause, message }: End) => {
      const value = { cause: CAUSES[cause], message };
      return send(run, {
        case: "ended",
        value: endedAt ? { ...value, endedAt: timestampFromDate(endedAt) } : value,
      });
    },
    removed: (sandboxId: string) =>
      send({ sandboxId, generation: 0 }, { case: "removed", value: {} }),
  };
}
