import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type {
  VolumeKey,
  VolumeStore,
} from "../../../services/orchestrator/engines/volume-store.ts";
import {
  createDirectoryVolumes,
  type DirectoryVolumes,
} from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { createStore } from "../../../services/orchestrator/store.ts";
import { asCaller, connectFiles, type FileClients, upload } from "./files-support.ts";
import { createSystem, type System } from "./support.ts";

const run = promisify(execFile);

/** A system whose engine keeps volumes in a folder of its own, and callers of their files. */
export interface VolumeSystem extends FileClients {
  system: System;
  directories: DirectoryVolumes;
  createVolume(name: string, capacityGib?: number): Promise<VolumeKey>;
  /** Writes a file through the API, in process. */
  put(volume: VolumeKey, path: string, content: string | Uint8Array): Promise<void>;
  /** Makes a file that takes so many bytes, as a sandbox does, and has the volume measured. */
  allocate(volume: VolumeKey, name: string, bytes: number): Promise<void>;
}

/** @param wrap changes what the engine does with volumes */
export async function createVolumeSystem(
  wrap: (volumes: DirectoryVolumes) => VolumeStore = (volumes) => volumes,
): Promise<VolumeSystem> {
  const root = await mkdtemp(join(tmpdir(), "sandgate-volumes-"));
  const directories = createDirectoryVolumes({ root });
  const system = await createSystem({ engine: { volumes: wrap(directories) } });
  const clients = await connectFiles(system.files);
  const { caller } = system;
  return {
    ...clients,
    system,
    directories,
    createVolume: async (name, capacityGib) => {
      const request = capacityGib === undefined ? { name } : { name, capacityGib };
      const { volume } = await system.volumes.createVolume(request, asCaller(caller));
      return { orgId: caller.orgId, volumeId: volume?.id ?? "" };
    },
    put: async ({ volumeId }, path, content) => {
      const bytes = typeof content === "string" ? Buffer.from(content) : content;
      await clients.inProcess.writeFile(upload({ volumeId, path }, [bytes]), asCaller(caller));
    },
    allocate: async (volume, name, bytes) => {
      const folder = await directories.directory(volume);
      await run("fallocate", ["-l", String(bytes), join(folder, name)]);
      const used = await directories.measure(volume, new AbortController().signal);
      await system.volumes.reportVolumeUse({
        volumeId: volume.volumeId,
        usedBytes: used.bytes,
        measuredAt: timestampFromDate(await createStore(system.database).readClock()),
      });
    },
    close: async () => {
      await clients.close();
      await system.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}
