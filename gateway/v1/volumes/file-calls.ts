import { type CallOptions, type Client, createContextValues } from "@connectrpc/connect";
import type { VolumeFileService } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { deadlineExceeded } from "../../errors.ts";
import type { Transfer, Transfers } from "../../http/transfers.ts";

export interface FileDeps {
  files: Client<typeof VolumeFileService>;
  transfers: Transfers;
  /** Deadline of one call to a service, and until a transfer begins. */
  rpcTimeoutMs: number;
  /** Most bytes of a file in one message; as they come where it is not set. */
  pieceBytes?: number | undefined;
}

/** Options of a call that goes on for as long as a transfer does. */
export function callDuring({ signal }: Transfer, caller: Caller): CallOptions {
  return { contextValues: createContextValues().set(callerKey, caller), signal };
}

/** The first message of a stream, which comes at once or not at all. */
export async function firstOf<T>(
  messages: AsyncIterator<T>,
  transfer: Transfer,
  timeoutMs: number,
): Promise<IteratorResult<T>> {
  const timer = setTimeout(() => transfer.cut(deadlineExceeded()), timeoutMs);
  try {
    return await messages.next();
  } catch (error) {
    throw transfer.reasonOf(error);
  } finally {
    clearTimeout(timer);
  }
}
