import { createHash, randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import type {
  VolumeFiles,
  VolumeKey,
} from "../../../services/orchestrator/engines/volume-store.ts";
import { asCaller, connectFiles, type FileClients, type Files } from "./files-support.ts";
import { createVolumeSystem, type VolumeSystem } from "./volumes-support.ts";

let rig: VolumeSystem;
let volume: VolumeKey;
/** A second process, whose calls a test may hold up before and after their effect. */
let second: FileClients;
const hold = { before: Promise.resolve(), after: Promise.resolve() };
let renames = 0;

beforeAll(async () => {
  rig = await createVolumeSystem();
  volume = await rig.createVolume("data");
  const { files } = rig.directories;
  const held: VolumeFiles = {
    ...files,
    rename: async (...of) => {
      await hold.before;
      renames += 1;
      await files.rename(...of);
      await hold.after;
    },
  };
  const volumes = { ...rig.directories, files: held };
  const engine = createSimulatedEngine({ features: [], volumes });
  second = await connectFiles((await rig.system.orchestrate(engine)).files);
});
afterAll(async () => {
  await second.close();
  await rig.close();
});

function keyed(key: string, request: string): ReturnType<typeof asCaller> {
  const requestSha256 = createHash("sha256").update(request).digest();
  const caller: Caller = { ...rig.system.caller, idempotency: { key, requestSha256 } };
  return asCaller(caller);
}

const at = (path: string) => ({ volumeId: volume.volumeId, path });
const move = (from: string, to: string) => ({ volumeId: volume.volumeId, from, to });
const exists = (path: string) =>
  rig.inProcess.statFile(at(path), asCaller(rig.system.caller)).then(
    () => true,
    () => false,
  );

async function refusalOf(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => fromConnectError(thrown),
  );
  return { reason: error?.reason, replayed: error?.metadata.replayed };
}

/** As if who holds the key's intent had died long ago. */
async function lapse(key: string): Promise<void> {
  await rig.system.database.query(
    `UPDATE organization.idempotency SET outcome = jsonb_set(outcome, '{intent,until}', to_jsonb(now() - interval '1 second'))
     WHERE key = $1 AND outcome ? 'intent' RETURNING key`,
    key,
  );
}

/** An intent on record, of somebody who died. */
async function abandoned(key: string, request: string, verb: string): Promise<void> {
  const hash = rig.system.ctx.hashRequest(createHash("sha256").update(request).digest());
  await rig.system.database.query(
    "SELECT organization.intend($1::uuid, $2, $3::bytea, $4, $5::uuid, $6::uuid, 15) AS state",
    rig.system.caller.orgId,
    key,
    hash,
    verb,
    volume.volumeId,
    randomUUID(),
  );
  await lapse(key);
}

const calls: Record<
  string,
  (files: Files, as: ReturnType<typeof asCaller>) => Promise<{ replayed: boolean }>
> = {
  mkdir: (files, as) => files.makeDirectory(at("/made"), as),
  copy: (files, as) => files.copyFile(move("/source", "/copied"), as),
  "copy of a directory": (files, as) => files.copyFile(move("/folder", "/copied-folder"), as),
  rename: (files, as) => files.renameFile(move("/source", "/moved"), as),
  remove: (files, as) => files.removeFile({ ...at("/source"), recursive: false }, as),
};
const effects: Record<string, () => Promise<boolean>> = {
  mkdir: () => exists("/made"),
  copy: () => exists("/copied"),
  "copy of a directory": () => exists("/copied-folder/inside"),
  rename: () => exists("/moved"),
  remove: async () => !(await exists("/source")),
};

async function reset(): Promise<void> {
  const as = asCaller(rig.system.caller);
  for (const path of ["/made", "/copied", "/copied-folder", "/moved"])
    await rig.inProcess.removeFile({ ...at(path), recursive: true }, as).catch(() => undefined);
  await rig.put(volume, "/source", "content");
  await rig.put(volume, "/folder/inside", "content");
}

test.each(Object.keys(calls))("%s: a repeat is answered from the record", async (name) => {
  await reset();
  const [call, effect] = [calls[name], effects[name]];
  if (!call || !effect) throw new Error("no such call");
  const as = keyed(`repeat ${name}`, name);
  expect(await call(rig.inProcess, as)).toMatchObject({ replayed: false });
  expect(await effect()).toBe(true);
  expect(await call(rig.socket, as)).toMatchObject({ replayed: true });
  expect(await call(second.inProcess, as)).toMatchObject({ replayed: true });
  await reset();
  // The record answers, and nothing is done again.
  expect(await call(rig.inProcess, as)).toMatchObject({ replayed: true });
  expect(await effect()).toBe(false);
});

test.each(Object.keys(calls))(
  "%s: whoever died before or behind the effect leaves it to the next one",
  async (name) => {
    const [call, effect] = [calls[name], effects[name]];
    if (!call || !effect) throw new Error("no such call");
    for (const moment of ["before", "behind"]) {
      await reset();
      const key = `${moment} ${name}`;
      await abandoned(key, name, "verb");
      if (moment === "behind") await call(rig.inProcess, asCaller(rig.system.caller));
      expect(await call(rig.inProcess, keyed(key, name))).toMatchObject({ replayed: false });
      expect(await effect()).toBe(true);
      expect(await call(rig.inProcess, keyed(key, name))).toMatchObject({ replayed: true });
    }
  },
);

test("a refusal is remembered, one of form is not, and another request is refused", async () => {
  await reset();
  const rename = (as: ReturnType<typeof asCaller>, from: string) =>
    rig.inProcess.renameFile(move(from, "/moved"), as);
  const as = keyed("refused", "rename");
  const missing = "VOLUME_FILE_NOT_FOUND";
  expect(await refusalOf(rename(as, "/late"))).toEqual({ reason: missing, replayed: undefined });
  await rig.put(volume, "/late", "here now");
  expect(await refusalOf(rename(as, "/late"))).toEqual({ reason: missing, replayed: "true" });
  const reused = { reason: "IDEMPOTENCY_KEY_REUSED", replayed: undefined };
  expect(await refusalOf(rename(keyed("refused", "another"), "/late"))).toEqual(reused);
  const form = keyed("form", "rename");
  const outside = { reason: "INVALID_VOLUME_PATH", replayed: undefined };
  expect(await refusalOf(rename(form, "../late"))).toEqual(outside);
  expect(await refusalOf(rename(form, "../late"))).toEqual(outside);
  expect(await rename(keyed("form", "another"), "/late")).toMatchObject({ replayed: false });
});

test("two processes do it once: the later one waits for the first", async () => {
  await reset();
  const release = Promise.withResolvers<void>();
  hold.after = release.promise;
  renames = 0;
  const as = keyed("two", "rename");
  const first = second.inProcess.renameFile(move("/source", "/moved"), as);
  await expect.poll(() => renames).toBe(1);
  await rig.put(volume, "/source", "new content, not to be moved");
  const later = rig.inProcess.renameFile(move("/source", "/moved"), as);
  release.resolve();
  hold.after = Promise.resolve();
  expect(await first).toMatchObject({ replayed: false });
  expect(await later).toMatchObject({ replayed: true });
  expect(await exists("/source")).toBe(true);
});

test("a process that was held up for too long answers with what the other one did", async () => {
  await reset();
  const release = Promise.withResolvers<void>();
  hold.before = release.promise;
  const as = keyed("frozen", "rename");
  const frozen = second.inProcess.renameFile(move("/source", "/moved"), as);
  await expect
    .poll(() =>
      rig.system.database.query("SELECT key FROM organization.idempotency WHERE key = 'frozen'"),
    )
    .toHaveLength(1);
  await lapse("frozen");
  expect(await rig.inProcess.renameFile(move("/source", "/moved"), as)).toMatchObject({
    replayed: false,
  });
  release.resolve();
  hold.before = Promise.resolve();
  expect(await frozen).toMatchObject({ replayed: true });
});

test("many at once do it once", async () => {
  await reset();
  const as = keyed("many", "rename");
  const answers = await Promise.all(
    [rig.inProcess, rig.socket, second.inProcess, second.socket].map((files) =>
      files.renameFile(move("/source", "/moved"), as),
    ),
  );
  expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
});
