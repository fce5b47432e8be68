import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import * as pb from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import * as rpc from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { SandboxSpecSchema } from "../../proto/gen/sandbox/v1/spec_pb.ts";
import { invalidRequest } from "../../runtime/errors.ts";
import { given } from "../../runtime/rpc/given.ts";
import type { Watched } from "./changes.ts";
import { inOrder } from "./domain/canonical-spec.ts";
import type { CreateSandbox } from "./domain/create-sandbox.ts";
import type { Answered } from "./domain/idempotency.ts";
import type { ListSandboxes } from "./domain/list-sandboxes.ts";
import type { Observation } from "./domain/report.ts";
import { type Lease, type SandboxKey, type SeenSandbox, STATUSES } from "./domain/sandbox.ts";
import { enumCodec } from "./messages/enums.ts";
import { sealedFromMessage, specFromMessage, specToMessage } from "./messages/spec.ts";

const status = enumCodec(pb.SandboxStatus, STATUSES);
const statusReason = enumCodec(pb.SandboxStatusReason, ["scheduling", "insufficient_capacity"]);
const endCause = enumCodec(rpc.RunEndCause, [
  "exited",
  "crashed",
  "out_of_memory",
  "lost",
  "start_failed",
  "stopped",
  "limit_reached",
  "stop_failed",
]);

export function sandboxToMessage(sandbox: SeenSandbox): pb.Sandbox {
  const { statusReason: reason, startedAt, stoppedAt, spec } = sandbox;
  return create(pb.SandboxSchema, {
    id: sandbox.id,
    orgId: sandbox.orgId,
    name: sandbox.name,
    slug: sandbox.slug,
    status: status.toNumber(sandbox.status),
    ...given("statusReason", reason && statusReason.toNumber(reason)),
    ephemeral: sandbox.ephemeral,
    createdAt: timestampFromDate(sandbox.createdAt),
    ...given("startedAt", startedAt && timestampFromDate(startedAt)),
    ...given("stoppedAt", stoppedAt && timestampFromDate(stoppedAt)),
    ...given("lastFailureMessage", sandbox.lastFailureMessage),
    ...given("spec", spec && specToMessage(inOrder(spec))),
    generation: sandbox.generation,
  });
}

/** The part of an answer that says that an earlier request did it. */
export function replayToMessage({ replay }: Pick<Answered, "replay">): {
  replay?: { answer: Uint8Array };
} {
  return replay ? { replay: { answer: replay.answer ?? new Uint8Array() } } : {};
}

export function createFromMessage(message: rpc.CreateSandboxRequest): CreateSandbox {
  const spec = message.spec ?? create(SandboxSpecSchema);
  return {
    name: message.name,
    slug: message.slug ?? null,
    spec: specFromMessage(spec),
    sealed: sealedFromMessage(spec),
    start: message.start,
  };
}

export function keyFromMessage(message: rpc.SandboxKey | undefined): SandboxKey {
  const key = message?.key;
  if (key?.case === "id") return { id: key.value };
  if (key?.case === "name") return { name: key.value };
  throw invalidRequest([{ field: "key", message: "is required" }]);
}

export function listFromMessage(message: rpc.ListSandboxesRequest): ListSandboxes {
  return {
    limit: message.pageSize,
    cursor: message.pageToken,
    labels: message.labels,
    statuses: message.statuses.flatMap((value) => status.toWord(value) ?? []),
    omitSpecs: message.omitSpecs,
  };
}

export function watchedToMessage({
  cursor,
  change,
}: Watched): MessageInitShape<typeof rpc.WatchSandboxesResponseSchema> {
  if (!change) return { cursor, event: { case: "reset", value: {} } };
  const value = { ...change, status: status.toNumber(change.status) };
  return { cursor, event: { case: "change", value } };
}

export function observationFromMessage({ observation }: rpc.ReportRequest): Observation {
  switch (observation.case) {
    case "placed":
      return { kind: "placed" };
    case "waiting": {
      const reason = statusReason.toWord(observation.value.reason) ?? "insufficient_capacity";
      return { kind: "waiting", reason };
    }
    case "workloadEnded":
      return { kind: "workload_ended", endedAt: timeOf(observation.value.endedAt) };
    case "running":
      return { kind: "running", startedAt: timeOf(observation.value.startedAt) };
    case "ended": {
      const { endedAt, cause, message } = observation.value;
      const word = endCause.toWord(cause) ?? "lost";
      return {
        kind: "ended",
        endedAt: endedAt ? timestampDate(endedAt) : null,
        cause: word,
        message,
      };
    }
    case "removed":
      return { kind: "removed" };
    default:
      throw invalidRequest([{ field: "observation", message: "is required" }]);
  }
}

/** Whose lease a report carries; null: none, so it is not asked for. */
export function leaseFromMessage({ lease }: rpc.ReportRequest): Lease | null {
  return lease ? { engine: lease.engine, epoch: lease.epoch } : null;
}

// The contract requires it.
function timeOf(at: Timestamp | undefined): Date {
  return at ? timestampDate(at) : new Date();
}
