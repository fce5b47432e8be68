import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FileKind } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { EngineUnavailable } from "../../../services/orchestrator/engines/engine.ts";
import type { VolumeKey } from "../../../services/orchestrator/engines/volume-store.ts";
import { newCaller } from "../sandbox/support.ts";
import {
  asCaller,
  connectFiles,
  download,
  type Files,
  fakeStore,
  upload,
} from "./files-support.ts";
import { createSystem } from "./support.ts";
import { createVolumeSystem, type VolumeSystem } from "./volumes-support.ts";

let rig: VolumeSystem;
let volume: VolumeKey;
beforeAll(async () => {
  rig = await createVolumeSystem();
  volume = await rig.createVolume("data");
});
afterAll(() => rig.close());

/** Every call, for `path`. */
function everyCall(files: Files, volumeId: string, as: ReturnType<typeof asCaller>, path = "/f") {
  const at = { volumeId, path };
  const move = { volumeId, from: path, to: "/other" };
  const drained = async (messages: AsyncIterable<unknown>) => {
    for await (const _ of messages);
  };
  return {
    list: () => drained(files.listFiles(at, as)),
    stat: () => files.statFile(at, as),
    read: () => drained(files.readFile(at, as)),
    write: () => files.writeFile(upload(at, [Buffer.from("x")]), as),
    mkdir: () => files.makeDirectory(at, as),
    copy: () => files.copyFile(move, as),
    rename: () => files.renameFile(move, as),
    remove: () => files.removeFile({ ...at, recursive: false }, as),
  };
}

async function reasonOf(call: () => Promise<unknown>): Promise<string | undefined> {
  return call().then(
    () => "none",
    (error: unknown) => fromConnectError(error)?.reason,
  );
}

describe.each(["inProcess", "socket"] as const)("%s", (way) => {
  const as = () => asCaller(rig.system.caller);
  const at = (path: string) => ({ volumeId: volume.volumeId, path });
  const move = (from: string, to: string) => ({ volumeId: volume.volumeId, from, to });

  test("a file is written, seen, read in parts, moved, copied and removed", async () => {
    const files = rig[way];
    const { info } = await files.writeFile(
      upload(at("a/ü.txt"), [Buffer.from("0123456789")]),
      as(),
    );
    expect(info).toMatchObject({ path: "/a/ü.txt", kind: FileKind.FILE, size: 10n, mode: 0o644 });
    expect((await files.statFile(at("/a"), as())).info).toMatchObject({ kind: FileKind.DIRECTORY });
    const read = (range: object) =>
      download(files, rig.system.caller, { ...at("/a/ü.txt"), ...range });
    expect(String(await read({}))).toBe("0123456789");
    expect(String(await read({ offset: 3n, length: 4n }))).toBe("3456");
    expect(String(await read({ last: 2n }))).toBe("89");
    expect(String(await read({ offset: 100n }))).toBe("");
    await files.makeDirectory(at("/b/c"), as());
    await files.copyFile(move("/a/ü.txt", "/b/c/copy"), as());
    await files.renameFile(move("/a/ü.txt", "/b/moved"), as());
    const names: string[] = [];
    for await (const { entries } of files.listFiles(at("/b"), as()))
      names.push(...entries.map(({ path }) => path));
    expect(names.sort()).toEqual(["/b/c", "/b/moved"]);
    expect(await reasonOf(() => files.removeFile({ ...at("/b"), recursive: false }, as()))).toBe(
      "FILE_CONFLICT",
    );
    await files.removeFile({ ...at("/b"), recursive: true }, as());
    expect(await reasonOf(() => files.statFile(at("/b"), as()))).toBe("VOLUME_FILE_NOT_FOUND");
  });

  test("an empty file is one", async () => {
    await rig[way].writeFile(upload({ ...at("/empty"), length: 0n }, []), as());
    expect((await rig[way].statFile(at("/empty"), as())).info?.size).toBe(0n);
    expect(await download(rig[way], rig.system.caller, at("/empty"))).toHaveLength(0);
  });

  test("a path that leaves the volume is refused by every call", async () => {
    for (const call of Object.values(everyCall(rig[way], volume.volumeId, as(), "../x")))
      expect(await reasonOf(call)).toBe("INVALID_VOLUME_PATH");
  });

  test("another organization's volume is none", async () => {
    const stranger = asCaller(newCaller());
    for (const call of Object.values(everyCall(rig[way], volume.volumeId, stranger)))
      expect(await reasonOf(call)).toBe("VOLUME_NOT_FOUND");
  });
});

test("of an upload that breaks off nothing is left, and what was there stays", async () => {
  await rig.put(volume, "/kept", "as it was");
  async function* torn() {
    yield Buffer.alloc(2 ** 20);
    throw new Error("gone");
  }
  for (const files of [rig.inProcess, rig.socket])
    for (const path of ["/kept", "/fresh/new"])
      await expect(
        files.writeFile(
          upload({ volumeId: volume.volumeId, path }, torn()),
          asCaller(rig.system.caller),
        ),
      ).rejects.toThrow();
  const read = { volumeId: volume.volumeId, path: "/kept" };
  expect(String(await download(rig.inProcess, rig.system.caller, read))).toBe("as it was");
  const fresh = { volumeId: volume.volumeId, path: "/fresh" };
  const stat = () => rig.inProcess.statFile(fresh, asCaller(rig.system.caller));
  expect(await reasonOf(stat)).toBe("VOLUME_FILE_NOT_FOUND");
});

test("an engine without volumes, or without files of theirs, says so at every call", async () => {
  const { files: _none, ...withoutFiles } = fakeStore({});
  for (const volumes of [undefined, { ...withoutFiles, files: undefined }]) {
    const system = await createSystem(volumes ? { engine: { volumes } } : {});
    const clients = await connectFiles(system.files);
    const as = asCaller(system.caller);
    const made = await system.volumes.createVolume({ name: "data" }, as);
    for (const call of Object.values(everyCall(clients.inProcess, made.volume?.id ?? "", as)))
      await expect(call()).rejects.toThrow("engine keeps no files of volumes");
    await clients.close();
    await system.close();
  }
});

describe("what the engine says", () => {
  test.each([
    [new EngineUnavailable("/srv/volumes is away"), "the files of volumes cannot be reached now"],
    [
      new EngineUnavailable("no", { cause: Object.assign(new Error("no"), { code: "ENOSPC" }) }),
      "the disk that volumes are on is full",
    ],
  ])("%s", async (error, sentence) => {
    const fails = async () => {
      throw error;
    };
    const store = fakeStore({ write: fails, stat: fails, remove: fails });
    const system = await createSystem({ engine: { volumes: store } });
    const clients = await connectFiles(system.files);
    const as = asCaller(system.caller);
    const made = await system.volumes.createVolume({ name: "data" }, as);
    // Through the socket it would be tried again for a while, as it does no harm.
    const { stat } = everyCall(clients.inProcess, made.volume?.id ?? "", as);
    const { write, remove } = everyCall(clients.socket, made.volume?.id ?? "", as);
    for (const call of [stat, write, remove]) {
      await expect(call()).rejects.toThrow(`[unavailable] ${sentence}`);
      expect(await reasonOf(call)).toBe("SERVICE_UNAVAILABLE");
    }
    await clients.close();
    await system.close();
  });
});
