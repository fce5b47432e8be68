import type { ServiceImpl } from "@connectrpc/connect";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { createChanges } from "./changes.ts";
import type { SandboxContext } from "./context.ts";
import type { Change } from "./domain/sandbox.ts";
import { createHint } from "./hint.ts";
import { startHousekeeping } from "./housekeeping.ts";
import { Peers } from "./peers.ts";
import { createSandboxService } from "./service.ts";
import { openPeerLine } from "./store/peer-line.ts";
import { createStore, type Database } from "./store.ts";
import { createVolumeService } from "./volume-service.ts";

export interface SandboxOptions
  extends Pick<SandboxContext, "seal" | "sign" | "hashRequest" | "lingerSecs"> {
  database: Database;
  /** For the one connection that listens. */
  databaseUrl: string;
  /** What goes wrong where no caller waits for it. */
  onError: (error: unknown) => void;
}

/** The sandbox service, with its housekeeping running, and known to the others of this database. */
export async function startSandboxService(options: SandboxOptions): Promise<{
  service: ServiceImpl<typeof SandboxService>;
  volumes: ServiceImpl<typeof VolumeService>;
  stop(): Promise<void>;
}> {
  const { database, databaseUrl, onError, ...settings } = options;
  const store = createStore(database);
  const hint = createHint(store.notify, onError);
  const local = createChanges();
  const peers = new Peers(local, (ears) => openPeerLine(databaseUrl, ears), onError);
  const publish = (change: Change) => {
    local.publish(change);
    peers.tell(change);
  };
  const changes = { publish, watch: local.watch };
  const ctx: SandboxContext = { store, changes, hint, ...settings };
  await peers.join();
  const housekeeping = startHousekeeping(ctx, onError);
  return {
    service: createSandboxService(ctx),
    volumes: createVolumeService(ctx),
    stop: async () => {
      await housekeeping.stop();
      await peers.stop();
    },
  };
}
