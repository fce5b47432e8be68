import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Client, createContextValues } from "@connectrpc/connect";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Caller } from "../../runtime/caller.ts";
import { callerKey } from "../../runtime/rpc/context.ts";
import { fromConnectError } from "../../runtime/rpc/errors.ts";

/** What the sandbox service is asked and told of volumes. */
export type VolumeCalls = ReturnType<typeof createVolumeCalls>;

const TIMEOUT_MS = 15_000;

/** Each throws ServiceError where it is refused. */
export function createVolumeCalls(volumes: Client<typeof VolumeService>) {
  return {
    /** Promises so many bytes in all to a write; throws QUOTA_EXCEEDED, VOLUME_NOT_FOUND. */
    reserve: (caller: Caller, volumeId: string, writeId: string, bytes: bigint) =>
      refused(volumes.reserveVolumeBytes({ volumeId, writeId, bytes }, optionsFor(caller))),
    /** The write is over, and wrote so many bytes. */
    settle: (caller: Caller, writeId: string, bytes: bigint) =>
      refused(volumes.settleVolumeWrite({ writeId, bytes }, optionsFor(caller))),
    /** A measurement that began at `measuredAt` found so many bytes. */
    used: (volumeId: string, usedBytes: bigint, measuredAt: Date) => {
      const request = { volumeId, usedBytes, measuredAt: timestampFromDate(measuredAt) };
      return refused(volumes.reportVolumeUse(request, { timeoutMs: TIMEOUT_MS }));
    },
    /** Nothing of a deleted volume is left. */
    removed: (volumeId: string) =>
      refused(volumes.reportVolumeRemoved({ volumeId }, { timeoutMs: TIMEOUT_MS })),
  };
}

// An idempotency key is for what the client asked for, and this is but a part of it.
function optionsFor({ orgId, actor, requestId }: Caller) {
  const contextValues = createContextValues().set(callerKey, { orgId, actor, requestId });
  return { contextValues, timeoutMs: TIMEOUT_MS };
}

async function refused(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    throw fromConnectError(error) ?? error;
  }
}
