import {
  type Client,
  createClient,
  createContextValues,
  type ServiceImpl,
} from "@connectrpc/connect";
import pino from "pino";
import { VolumeFileService } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { createRemoteTransport } from "../../../runtime/rpc/client.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import type { Routes } from "../../../runtime/rpc/routes.ts";
import { listenRpc } from "../../../runtime/rpc/server.ts";
import type {
  FileInfo,
  VolumeFiles,
  VolumeStore,
} from "../../../services/orchestrator/engines/volume-store.ts";

export const TOKEN = "test-service-token";
const log = pino({ level: "silent" });

export type Files = Client<typeof VolumeFileService>;

/** Callers of file calls, by the way that they take. */
export interface FileClients {
  inProcess: Files;
  socket: Files;
  port: number;
  close(): Promise<void>;
}

/** @param files what serves them */
export async function connectFiles(
  files: ServiceImpl<typeof VolumeFileService>,
): Promise<FileClients> {
  const routes: Routes = (router) => router.service(VolumeFileService, files);
  const options = { host: "127.0.0.1", port: 0, tokens: [TOKEN], ready: () => true, log };
  const server = await listenRpc({ ...options, routes });
  const remote = createRemoteTransport({
    baseUrl: `http://127.0.0.1:${server.port}`,
    token: TOKEN,
  });
  return {
    inProcess: createClient(
      VolumeFileService,
      createInProcessTransport(routes, { log, freeze: true }),
    ),
    socket: createClient(VolumeFileService, remote),
    port: server.port,
    close: async () => {
      remote.close();
      await server.close();
    },
  };
}

export function asCaller(caller: Caller) {
  return { contextValues: createContextValues().set(callerKey, caller) };
}

/** The messages of an upload. */
export async function* upload(
  target: { volumeId: string; path: string; length?: bigint },
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
) {
  yield { part: { case: "target" as const, value: target } };
  for await (const value of content) yield { part: { case: "data" as const, value } };
  yield { part: { case: "end" as const, value: {} } };
}

/** All that a file holds. */
export async function download(
  files: Files,
  caller: Caller,
  request: Parameters<Files["readFile"]>[0],
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const { part } of files.readFile(request, asCaller(caller)))
    if (part.case === "data") parts.push(part.value);
  return Buffer.concat(parts);
}

/** A store of which a test says what it does; what it does not say fails. */
export function fakeStore(
  files: Partial<VolumeFiles>,
  rest: Partial<VolumeStore> = {},
): VolumeStore {
  const missing = () => {
    throw new Error("the test does not say what this does");
  };
  return {
    remove: async () => undefined,
    measure: async () => ({ bytes: 0n, entries: 0 }),
    ...rest,
    files: {
      list: missing,
      stat: missing,
      read: missing,
      write: missing,
      makeDirectory: missing,
      copy: missing,
      rename: missing,
      remove: missing,
      ...files,
    },
  };
}

export function fileInfo(path: string, size: bigint): FileInfo {
  const at = new Date(1_700_000_000_000);
  const times = { accessedAt: at, modifiedAt: at, createdAt: null };
  return { path, kind: "file", size, mode: 0o644, uid: 0, gid: 0, ...times };
}
