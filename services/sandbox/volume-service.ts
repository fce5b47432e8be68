import type { ServiceImpl } from "@connectrpc/connect";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import type { SandboxContext } from "./context.ts";

/** Every RPC of sandbox.v1's VolumeService: read the message, call the verb, write the message. */
export function createVolumeService(_ctx: SandboxContext): ServiceImpl<typeof VolumeService> {
  const missing = async () => {
    throw new ServiceError("SERVICE_UNAVAILABLE", "not built yet");
  };
  return {
    createVolume: missing,
    getVolume: missing,
    getHostVolume: missing,
    listVolumes: missing,
    updateVolume: missing,
    deleteVolume: missing,
    reserveVolumeBytes: missing,
    settleVolumeWrite: missing,
    reportVolumeUse: missing,
    reportVolumeRemoved: missing,
  };
}
