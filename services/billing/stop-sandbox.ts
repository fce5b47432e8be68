import { type Client, createContextValues } from "@connectrpc/connect";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { callerKey } from "../../runtime/rpc/context.ts";
import { fromConnectError } from "../../runtime/rpc/errors.ts";
import type { CapContext } from "./context.ts";
import { POOL_ACTOR } from "./domain/enforce-caps.ts";

const TIMEOUT_MS = 15_000;
/** It is stopped already, or gone. */
const DONE = new Set(["SANDBOX_NOT_FOUND", "INVALID_STATE_TRANSITION"]);

/** Stops through the sandbox service, as whoever notices that a pool is used up. */
export function createStopSandbox(
  sandboxes: Client<typeof SandboxService>,
): CapContext["stopSandbox"] {
  return async ({ orgId, sandboxId }) => {
    const caller = { orgId, actor: POOL_ACTOR, requestId: `pool-${sandboxId}` };
    const contextValues = createContextValues().set(callerKey, caller);
    const key = { key: { case: "id", value: sandboxId } } as const;
    try {
      await sandboxes.stopSandbox({ key }, { contextValues, timeoutMs: TIMEOUT_MS });
    } catch (error) {
      if (!DONE.has(fromConnectError(error)?.reason ?? "")) throw error;
    }
  };
}
