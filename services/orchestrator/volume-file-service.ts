import type { ServiceImpl } from "@connectrpc/connect";
import type { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";

/** Every RPC of orchestrator.v1's VolumeFileService: read the message, call the verb, write the message. */
export function createVolumeFileService(): ServiceImpl<typeof VolumeFileService> {
  const missing = async () => {
    throw new ServiceError("SERVICE_UNAVAILABLE", "not built yet");
  };
  return {
    // biome-ignore lint/correctness/useYield: not built yet
    async *listFiles() {
      await missing();
    },
    statFile: missing,
    // biome-ignore lint/correctness/useYield: not built yet
    async *readFile() {
      await missing();
    },
    writeFile: missing,
    makeDirectory: missing,
    copyFile: missing,
    renameFile: missing,
    removeFile: missing,
  };
}
