import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceDefinition, status } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { WriteFileRequestSchema } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { writeCaller } from "../../../runtime/rpc/caller-headers.ts";
import { PIECE as MOST_IN_A_MESSAGE } from "../../../runtime/rpc/pieces.ts";
import {
  asCaller,
  connectFiles,
  type FileClients,
  type Files,
  fakeStore,
  fileInfo,
  TOKEN,
  upload,
} from "./files-support.ts";
import { createSystem, type System } from "./support.ts";

const MIB = 1024 * 1024;
const PIECE = Buffer.alloc(MIB, 7);
const PIECES = 100;
// What may be under way: windows of flow control, and a few messages on each side.
const MOST_BUFFERED = 12 * MIB;

/** How far whoever sends is ahead of whoever takes. */
class Gap {
  #sent = 0;
  taken = 0;
  most = 0;
  send(bytes: number): void {
    this.#sent += bytes;
    this.most = Math.max(this.most, this.#sent - this.taken);
  }
}

let gap: Gap;
let system: System;
let clients: FileClients;
let volumeId: string;
/** What ended the store's last write. */
let ended: unknown;
let closed = 0;
let grpc: Client;
let methods: ServiceDefinition;
let metadata: Metadata;

const store = fakeStore({
  write: async (_volume, path, content) => {
    let size = 0;
    try {
      for await (const data of content) {
        size += data.length;
        gap.taken += data.length;
        // Slower than it is sent.
        await sleep(1);
      }
      ended = "whole";
    } catch (error) {
      ended = error;
      throw error;
    }
    return fileInfo(path, BigInt(size));
  },
  read: async (_volume, path) => {
    const length = BigInt(PIECES * MIB);
    async function* content() {
      for (let i = 0; i < PIECES * 2; i += 1) {
        gap.send(MIB / 2);
        yield Buffer.alloc(MIB / 2, 7);
      }
    }
    const close = async () => {
      closed += 1;
    };
    return {
      info: fileInfo(path, length),
      version: "1",
      offset: 0n,
      length,
      content: content(),
      close,
    };
  },
});

async function* sent(count = PIECES) {
  for (let i = 0; i < count; i += 1) {
    gap.send(MIB);
    yield PIECE;
  }
}

beforeAll(async () => {
  system = await createSystem({ engine: { volumes: store } });
  clients = await connectFiles(system.files);
  const made = await system.volumes.createVolume({ name: "data" }, asCaller(system.caller));
  volumeId = made.volume?.id ?? "";
  grpc = new Client(`127.0.0.1:${clients.port}`, credentials.createInsecure());
  const definition = await load("orchestrator/v1/volume_file_service.proto", {
    includeDirs: ["proto", "third_party"],
    keepCase: true,
    enums: String,
    longs: String,
    oneofs: true,
  });
  // Of what the loader returns, names of services stand for services.
  methods = definition["orchestrator.v1.VolumeFileService"] as ServiceDefinition;
  const header = new Headers({ authorization: `Bearer ${TOKEN}` });
  writeCaller(header, system.caller);
  metadata = new Metadata();
  for (const [name, value] of header) metadata.set(name, value);
});
beforeEach(() => {
  gap = new Gap();
  ended = undefined;
  closed = 0;
});
afterAll(async () => {
  grpc.close();
  await clients.close();
  await system.close();
});

describe.each(["inProcess", "socket"] as const)("%s", (way) => {
  const files = (): Files => clients[way];

  test("an upload is sent as fast as it is written, and no faster", async () => {
    const target = { volumeId, path: "/big", length: BigInt(PIECES * MIB) };
    const { info } = await files().writeFile(upload(target, sent()), asCaller(system.caller));
    expect(info).toMatchObject({ path: "/big", size: BigInt(PIECES * MIB), readonly: false });
    expect(gap.taken).toBe(PIECES * MIB);
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
  });

  test("a download is read as fast as it is taken, in messages of a fitting size", async () => {
    const request = { volumeId, path: "/big" };
    const parts: string[] = [];
    for await (const { part } of files().readFile(request, asCaller(system.caller))) {
      if (parts.length === 0) parts.push(part.case ?? "nothing");
      if (part.case !== "data") continue;
      // All but the last.
      if (gap.taken + part.value.length < PIECES * MIB)
        expect(part.value.length).toBe(MOST_IN_A_MESSAGE);
      expect(part.value.length).toBeLessThanOrEqual(MOST_IN_A_MESSAGE);
      gap.taken += part.value.length;
      await sleep(1);
    }
    expect(parts).toEqual(["opened"]);
    expect(gap.taken).toBe(PIECES * MIB);
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
    expect(closed).toBe(1);
  });

  test("whoever hangs up has the file closed", async () => {
    const hangUp = new AbortController();
    const options = { ...asCaller(system.caller), signal: hangUp.signal };
    const reading = async () => {
      for await (const { part } of files().readFile({ volumeId, path: "/big" }, options))
        if (part.case === "data") hangUp.abort();
    };
    await expect(reading()).rejects.toThrow();
    await expect.poll(() => closed).toBe(1);
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
  });

  test("an upload that breaks off ends the write as a failure", async () => {
    const hangUp = new AbortController();
    async function* torn() {
      yield* sent(3);
      hangUp.abort();
      yield* sent(1);
    }
    const options = { ...asCaller(system.caller), signal: hangUp.signal };
    await expect(
      files().writeFile(upload({ volumeId, path: "/torn" }, torn()), options),
    ).rejects.toThrow();
    await expect.poll(() => ended).toBeInstanceOf(Error);
  });

  test("an upload whose sender fails ends the write as a failure", async () => {
    async function* failing() {
      yield* sent(3);
      throw new Error("the disk it is read from broke");
    }
    await expect(
      files().writeFile(upload({ volumeId, path: "/torn" }, failing()), asCaller(system.caller)),
    ).rejects.toThrow();
    await expect.poll(() => ended).toBeInstanceOf(Error);
  });

  test("an upload that is refused is not read to its end", async () => {
    const strange = "019a7c1e-0000-7000-8000-00000000dead";
    await expect(
      files().writeFile(upload({ volumeId: strange, path: "/x" }, sent()), asCaller(system.caller)),
    ).rejects.toThrow("resource not found");
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
  });

  test.each([
    ["less", 5, 4],
    ["more", 3, 4],
  ])("%s than was declared is refused", async (_name, declared, count) => {
    const target = { volumeId, path: "/x", length: BigInt(declared * MIB) };
    await expect(
      files().writeFile(upload(target, sent(count)), asCaller(system.caller)),
    ).rejects.toThrow(/^\[invalid_argument\] invalid request: length: /);
    expect(ended).toBeInstanceOf(Error);
  });

  test("parts that are missing, or come in another order, are refused", async () => {
    const data = { part: { case: "data" as const, value: PIECE } };
    const target = { part: { case: "target" as const, value: { volumeId, path: "/x" } } };
    const end = { part: { case: "end" as const, value: {} } };
    async function* of(...messages: MessageInitShape<typeof WriteFileRequestSchema>[]) {
      yield* messages;
    }
    for (const messages of [of(target, data), of(target, end, data)])
      await expect(files().writeFile(messages, asCaller(system.caller))).rejects.toThrow(
        "invalid request: end",
      );
    for (const messages of [of(data), of(target, target), of()])
      await expect(files().writeFile(messages, asCaller(system.caller))).rejects.toThrow(
        "invalid request: target",
      );
    await expect(files().writeFile(of({}), asCaller(system.caller))).rejects.toThrow(
      "invalid request: part",
    );
  });
});

describe("a gRPC client of another make", () => {
  function write(onAnswer: (error: Error | null, answer?: unknown) => void) {
    const { WriteFile: method } = methods;
    if (!method) throw new Error("no method");
    const { path, requestSerialize, responseDeserialize } = method;
    return grpc.makeClientStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
      onAnswer,
    );
  }

  function read(request: object) {
    const { ReadFile: method } = methods;
    if (!method) throw new Error("no method");
    const { path, requestSerialize, responseDeserialize } = method;
    return grpc.makeServerStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      request,
      metadata,
    );
  }

  test("sends a file", async () => {
    const answer = Promise.withResolvers<unknown>();
    const call = write((error, given) => (error ? answer.reject(error) : answer.resolve(given)));
    call.write({ target: { volume_id: volumeId, path: "/big" } });
    // Its own buffer counts messages.
    for await (const data of sent())
      for (let at = 0; at < MIB; at += MIB / 8)
        if (!call.write({ data: data.subarray(at, at + MIB / 8) })) await once(call, "drain");
    call.write({ end: {} });
    call.end();
    expect(await answer.promise).toMatchObject({ info: { size: String(PIECES * MIB) } });
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
  });

  test("receives a file", async () => {
    const call = read({ volume_id: volumeId, path: "/big" });
    for await (const message of call) {
      if (message.part === "data") gap.taken += message.data.length;
      else expect(message.opened).toMatchObject({ version: "1", length: String(PIECES * MIB) });
      await sleep(1);
    }
    expect(gap.taken).toBe(PIECES * MIB);
    expect(gap.most).toBeLessThan(MOST_BUFFERED);
  });

  test("breaks off", async () => {
    const answer = Promise.withResolvers<unknown>();
    const call = write((error) => answer.resolve(error));
    call.write({ target: { volume_id: volumeId, path: "/torn" } });
    call.write({ data: PIECE });
    await expect.poll(() => gap.taken).toBe(MIB);
    call.cancel();
    expect(await answer.promise).toMatchObject({ code: status.CANCELLED });
    await expect.poll(() => ended).toBeInstanceOf(Error);
  });
});
