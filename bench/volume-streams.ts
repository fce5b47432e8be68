// What files cost on their way through the orchestrator: 2 GiB in and out, in process and through the socket, by Connect
// and by another make of gRPC client; how fast, and how much memory it takes at most.
// npm run bench:streams [-- GiB]
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, createContextValues } from "@connectrpc/connect";
import * as grpc from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import pino from "pino";
import { VolumeFileService } from "../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import type { Caller } from "../runtime/caller.ts";
import { writeCaller } from "../runtime/rpc/caller-headers.ts";
import { createRemoteTransport } from "../runtime/rpc/client.ts";
import { callerKey } from "../runtime/rpc/context.ts";
import { createInProcessTransport } from "../runtime/rpc/in-process.ts";
import type { Routes } from "../runtime/rpc/routes.ts";
import { listenRpc } from "../runtime/rpc/server.ts";
import type { FilesContext } from "../services/orchestrator/domain/files/context.ts";
import { createDirectoryVolumes } from "../services/orchestrator/engines/volumes/directory-volumes.ts";
import { createVolumeFileService } from "../services/orchestrator/volume-file-service.ts";

const GIB = Number(process.argv[2] ?? 2);
const MIB = 2 ** 20;
const PIECE = Buffer.alloc(MIB / 4, 7);
const PIECES = GIB * 4096;
const BYTES = PIECES * PIECE.length;
const TOKEN = "bench-service-token";
const CALLER: Caller = {
  orgId: "019a7c1e-0000-7000-8000-000000000001",
  actor: { kind: "system", code: "bench", label: "Bench" },
  requestId: "bench",
};
const volumeId = "019a7c1e-0000-7000-8000-000000000002";
const target = { volumeId, path: "/file", length: BigInt(BYTES) };
const log = pino({ level: "silent" });

/** One volume without a cap, and no database. */
function contextOf(root: string): FilesContext {
  const none = () => {
    throw new Error("it is not asked for here");
  };
  const key = { orgId: CALLER.orgId, volumeId, capped: false };
  const store = { listChangedOf: none, intend: none, holdIntent: none };
  const more = { settleIntent: none, withdrawIntent: none, findVolume: async () => key };
  return {
    store: { ...store, ...more },
    volumes: createDirectoryVolumes({ root }),
    calls: { reserve: none, settle: none },
    measurer: undefined,
    changes: { note: async () => undefined },
    hashRequest: none,
    complain: console.error,
    log,
  };
}

async function* upload() {
  yield { part: { case: "target" as const, value: target } };
  for (let i = 0; i < PIECES; i += 1) yield { part: { case: "data" as const, value: PIECE } };
}

async function measure(name: string, work: () => Promise<number>): Promise<void> {
  let most = 0;
  const look = () => {
    most = Math.max(most, process.memoryUsage().rss);
  };
  const before = process.memoryUsage().rss;
  const timer = setInterval(look, 20);
  const cpu = process.cpuUsage();
  const began = performance.now();
  const bytes = await work();
  const secs = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  clearInterval(timer);
  if (bytes !== BYTES) throw new Error(`${name}: ${bytes} bytes`);
  console.log(
    `${name.padEnd(24)} ${(bytes / MIB / secs).toFixed(0)} MiB/s, ${((user + system) / 1e6).toFixed(1)} s of processor;`,
    `resident ${(before / MIB).toFixed(0)} MiB before, ${(most / MIB).toFixed(0)} at most`,
  );
}

function byConnect(files: Client<typeof VolumeFileService>) {
  const options = { contextValues: createContextValues().set(callerKey, CALLER) };
  return {
    in: async () => Number((await files.writeFile(upload(), options)).info?.size),
    out: async () => {
      let bytes = 0;
      for await (const { part } of files.readFile({ volumeId, path: "/file" }, options))
        if (part.case === "data") bytes += part.value.length;
      return bytes;
    },
  };
}

async function byGrpc(port: number) {
  const client = new grpc.Client(`127.0.0.1:${port}`, grpc.credentials.createInsecure());
  const definition = await load("orchestrator/v1/volume_file_service.proto", {
    includeDirs: ["proto", "third_party"],
    keepCase: true,
    longs: String,
    oneofs: true,
  });
  const methods = definition["orchestrator.v1.VolumeFileService"] as grpc.ServiceDefinition;
  const header = new Headers({ authorization: `Bearer ${TOKEN}` });
  writeCaller(header, CALLER);
  const metadata = new grpc.Metadata();
  for (const [name, value] of header) metadata.set(name, value);
  const method = (name: string) => {
    const found = methods[name];
    if (!found) throw new Error(`no method ${name}`);
    return found;
  };
  return {
    in: async () => {
      const answer = Promise.withResolvers<{ info: { size: string } }>();
      const { path, requestSerialize, responseDeserialize } = method("WriteFile");
      const call = client.makeClientStreamRequest<object, { info: { size: string } }>(
        path,
        requestSerialize,
        responseDeserialize,
        metadata,
        (error, given) => (given ? answer.resolve(given) : answer.reject(error)),
      );
      call.write({ target: { volume_id: volumeId, path: "/file", length: String(target.length) } });
      for (let i = 0; i < PIECES; i += 1)
        if (!call.write({ data: PIECE })) await once(call, "drain");
      call.end();
      return Number((await answer.promise).info.size);
    },
    out: async () => {
      const { path, requestSerialize, responseDeserialize } = method("ReadFile");
      const request = { volume_id: volumeId, path: "/file" };
      const call = client.makeServerStreamRequest(
        path,
        requestSerialize,
        responseDeserialize,
        request,
        metadata,
      );
      let bytes = 0;
      for await (const message of call) bytes += message.data?.length ?? 0;
      return bytes;
    },
    close: () => client.close(),
  };
}

const root = await mkdtemp(join(tmpdir(), "sandgate-bench-"));
const routes: Routes = (router) =>
  router.service(VolumeFileService, createVolumeFileService(contextOf(root)));
const server = await listenRpc({
  host: "127.0.0.1",
  port: 0,
  tokens: [TOKEN],
  ready: () => true,
  log,
  routes,
});
const remote = createRemoteTransport({ baseUrl: `http://127.0.0.1:${server.port}`, token: TOKEN });
const inProcess = byConnect(
  createClient(VolumeFileService, createInProcessTransport(routes, { log })),
);
const socket = byConnect(createClient(VolumeFileService, remote));
const other = await byGrpc(server.port);
await measure("in process, in", inProcess.in);
await measure("in process, out", inProcess.out);
await measure("Connect, in", socket.in);
await measure("Connect, out", socket.out);
await measure("gRPC (grpc-js), in", other.in);
await measure("gRPC (grpc-js), out", other.out);
other.close();
remote.close();
await server.close();
await rm(root, { recursive: true, force: true });
