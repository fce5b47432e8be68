import type { ServiceImpl } from "@connectrpc/connect";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { createChanges } from "./changes.ts";
import type { SandboxContext } from "./context.ts";
import { createHint } from "./hint.ts";
import { startHousekeeping } from "./housekeeping.ts";
import { createSandboxService } from "./service.ts";
import { createStore, type Database } from "./store.ts";
import { createVolumeService } from "./volume-service.ts";

export interface SandboxOptions
  extends Pick<SandboxContext, "seal" | "sign" | "hashRequest" | "lingerSecs"> {
  database: Database;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/** The sandbox service, with its housekeeping running. */
export function startSandboxService(options: SandboxOptions): {
  service: ServiceImpl<typeof SandboxService>;
  volumes: ServiceImpl<typeof VolumeService>;
  stop(): Promise<void>;
} {
  const { database, onError, ...settings } = options;
  const store = createStore(database);
  const hint = createHint(store.notify, onError);
  const ctx: SandboxContext = { store, changes: createChanges(), hint, ...settings };
  const housekeeping = startHousekeeping(ctx, onError);
  return {
    service: createSandboxService(ctx),
    volumes: createVolumeService(ctx),
    stop: housekeeping.stop,
  };
}
