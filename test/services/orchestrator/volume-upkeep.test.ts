import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pino from "pino";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { EngineUnavailable } from "../../../services/orchestrator/engines/engine.ts";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import type {
  VolumeKey,
  VolumeStore,
} from "../../../services/orchestrator/engines/volume-store.ts";
import { createStore } from "../../../services/orchestrator/store.ts";
import { createVolumeCalls } from "../../../services/orchestrator/volume-calls.ts";
import { Changes } from "../../../services/orchestrator/volumes/changes.ts";
import { Measurer } from "../../../services/orchestrator/volumes/measurer.ts";
import { Metering } from "../../../services/orchestrator/volumes/metering.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { FEATURES } from "../../../services/sandbox/domain/requirements.ts";
import { asCaller } from "./files-support.ts";
import { createVolumeSystem, type VolumeSystem } from "./volumes-support.ts";

const log = pino({ level: "silent" });
const KIB = 1024;

let rig: VolumeSystem;
/** What the first orchestrator's engine says in place of doing it. */
let removing: Error | undefined;
let removals = 0;

beforeAll(async () => {
  rig = await createVolumeSystem((directories) => ({
    ...directories,
    remove: async (...of) => {
      removals += 1;
      if (removing) throw removing;
      await directories.remove(...of);
    },
  }));
});
afterAll(() => rig.close());

async function usedBytes({ volumeId }: VolumeKey): Promise<bigint | undefined> {
  const { volume } = await rig.system.volumes.getVolume(
    { id: volumeId },
    asCaller(rig.system.caller),
  );
  return volume?.usedBytes;
}

async function measureNow(volume: VolumeKey, volumes: VolumeStore = rig.directories) {
  await measurerOf(volumes).measure(volume);
}

function measurerOf(volumes: VolumeStore): Measurer {
  const { readClock } = createStore(rig.system.database);
  return new Measurer({ volumes, readClock, calls: createVolumeCalls(rig.system.volumes) });
}

/** Measuring that is quick, beside the system's own. */
function meter(volumes: VolumeStore = rig.directories, changedSecs = 0.05, patienceMs = 10_000) {
  const { noteMounted, listToMeasure } = createStore(rig.system.database);
  const looked = { times: 0 };
  const store = {
    listToMeasure,
    noteMounted: async (secs: number) => {
      const mounted = await noteMounted(secs);
      looked.times += 1;
      return mounted;
    },
  };
  const measurer = measurerOf(volumes);
  const metering = new Metering({ store, measurer, log, roundMs: 20, changedSecs, patienceMs });
  onTestFinished(async () => {
    await metering.stop();
    await measurer.stop();
  });
  return looked;
}

const rowsOf = ({ volumeId }: VolumeKey) =>
  rig.system.database.query("SELECT id FROM sandbox.volumes WHERE id = $1::uuid", volumeId);

test("what a deleted volume held goes away behind it, tried until it is done, by whoever leads", async () => {
  const volume = await rig.createVolume("doomed");
  await rig.put(volume, "/a/b", "content");
  const folder = await rig.directories.directory(volume);
  removing = new EngineUnavailable("the disk is away");
  removals = 0;
  await rig.system.volumes.deleteVolume({ id: volume.volumeId }, asCaller(rig.system.caller));
  await expect.poll(() => removals).toBeGreaterThan(1);
  expect(await readdir(folder)).toEqual(["a"]);
  expect(await rowsOf(volume)).toHaveLength(1);
  // A new process begins where the old one ended.
  await rig.system.stopFirst();
  const engine = createSimulatedEngine({ features: FEATURES, volumes: rig.directories });
  await rig.system.orchestrate(engine);
  await expect.poll(() => rowsOf(volume)).toEqual([]);
  await expect(stat(folder)).rejects.toThrow();
});

test("a volume whose measurement does not end holds up no other", async () => {
  const endless = await rig.createVolume("endless");
  await measureNow(endless);
  let begun = 0;
  const volumes: VolumeStore = {
    ...rig.directories,
    measure: (key, signal) => {
      if (key.volumeId !== endless.volumeId) return rig.directories.measure(key, signal);
      begun += 1;
      return new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason)),
      );
    },
  };
  await rig.put(endless, "/f", "x");
  await rig.system.stopFirst();
  meter(volumes, 0.05, 1);
  await expect.poll(() => begun).toBe(1);
  const other = await rig.createVolume("beside");
  await rig.put(other, "/f", new Uint8Array(KIB).fill(1));
  await expect.poll(() => usedBytes(other)).toBe(BigInt(KIB));
  await rig.put(other, "/g", new Uint8Array(KIB).fill(1));
  await expect.poll(() => usedBytes(other)).toBe(BigInt(2 * KIB));
  // It goes on, and is not begun again beside itself.
  expect(begun).toBe(1);
});

test("a volume that was measured before the clock was set back is measured anew", async () => {
  const volume = await rig.createVolume("set-back");
  await measureNow(volume);
  const folder = await rig.directories.directory(volume);
  await writeFile(join(folder, "f"), new Uint8Array(KIB).fill(1));
  await rig.system.database.query(
    "UPDATE sandbox.volumes SET measured_at = now() + interval '1 hour' WHERE id = $1::uuid RETURNING id",
    volume.volumeId,
  );
  meter();
  await expect.poll(() => usedBytes(volume)).toBe(BigInt(KIB));
});

test("a volume is measured at once when it is new, and again when a file was written", async () => {
  const volume = await rig.createVolume("written");
  meter();
  await rig.put(volume, "/f", new Uint8Array(64 * KIB).fill(1));
  await expect.poll(() => usedBytes(volume)).toBe(BigInt(64 * KIB));
  await rig.inProcess.removeFile(
    { volumeId: volume.volumeId, path: "/f" },
    asCaller(rig.system.caller),
  );
  await expect.poll(() => usedBytes(volume)).toBe(0n);
});

test("what another process wrote is measured by whoever leads", async () => {
  const volume = await rig.createVolume("elsewhere");
  await measureNow(volume);
  await writeFile(
    join(await rig.directories.directory(volume), "f"),
    new Uint8Array(64 * KIB).fill(1),
  );
  await new Changes(createStore(rig.system.database).noteChanges).note(volume.volumeId);
  meter();
  await expect.poll(() => usedBytes(volume)).toBe(BigInt(64 * KIB));
});

test("one that nobody touches is left alone", async () => {
  const volume = await rig.createVolume("quiet");
  const busy = await rig.createVolume("busy");
  await measureNow(volume);
  await measureNow(busy);
  const measured: string[] = [];
  const volumes: VolumeStore = {
    ...rig.directories,
    measure: async (key, signal) => {
      measured.push(key.volumeId);
      return rig.directories.measure(key, signal);
    },
  };
  await new Changes(createStore(rig.system.database).noteChanges).note(busy.volumeId);
  meter(volumes);
  await expect.poll(() => measured.filter((id) => id === busy.volumeId).length).toBeGreaterThan(3);
  expect(measured).not.toContain(volume.volumeId);
});

test("what a sandbox writes is measured while it runs, and soon after it ended", async () => {
  const [writable, readonly] = [await rig.createVolume("rw"), await rig.createVolume("ro")];
  await measureNow(writable);
  await measureNow(readonly);
  const named = (name: string, isReadonly: boolean) => ({
    guest: `/${name}`,
    options: { readonly: isReadonly },
    source: { case: "named" as const, value: { name } },
  });
  const sandbox = await rig.system.create({ mounts: [named("rw", false), named("ro", true)] });
  await expect.poll(async () => (await rig.system.get(sandbox.id)).status).toBe("running");
  const store = createStore(rig.system.database);
  expect(await store.noteMounted(60)).toEqual([writable.volumeId]);
  const path = join(await rig.directories.directory(writable), "f");
  await writeFile(path, new Uint8Array(64 * KIB).fill(1));
  // Changes are measured so seldom here that only the end of the run can be why.
  const looked = meter(rig.directories, 1_000_000);
  await expect.poll(() => looked.times).toBeGreaterThan(1);
  await change.stopSandbox(rig.system.ctx, rig.system.caller, { id: sandbox.id });
  await expect.poll(() => usedBytes(writable)).toBe(BigInt(64 * KIB));
  expect(await store.noteMounted(60)).toEqual([]);
});

test("a sandbox that ran between two looks, and is gone, leaves its volume noted", async () => {
  const volume = await rig.createVolume("brief");
  await measureNow(volume);
  const mount = { guest: "/v", source: { case: "named" as const, value: { name: "brief" } } };
  const sandbox = await rig.system.create({ mounts: [mount] });
  await expect.poll(async () => (await rig.system.get(sandbox.id)).status).toBe("running");
  await rig.system.database.query(
    "DELETE FROM orchestrator.volume_changes WHERE volume_id = $1::uuid RETURNING volume_id",
    volume.volumeId,
  );
  await change.destroySandbox(rig.system.ctx, rig.system.caller, { id: sandbox.id });
  const left = () =>
    rig.system.database.query("SELECT id FROM sandbox.sandboxes WHERE id = $1::uuid", sandbox.id);
  await expect.poll(left).toEqual([]);
  const noted = () =>
    rig.system.database.query(
      "SELECT volume_id FROM orchestrator.volume_changes WHERE volume_id = $1::uuid AND until > now()",
      volume.volumeId,
    );
  expect(await noted()).toHaveLength(1);
});

test("an engine that is away is waited for, and a volume that cannot be read holds up no other", async () => {
  const [broken, sound] = [await rig.createVolume("broken"), await rig.createVolume("sound")];
  await rig.put(sound, "/f", new Uint8Array(64 * KIB).fill(1));
  const changes = new Changes(createStore(rig.system.database).noteChanges);
  await changes.note(broken.volumeId, sound.volumeId);
  let away = true;
  const tried: string[] = [];
  meter({
    ...rig.directories,
    measure: async (key, signal) => {
      tried.push(key.volumeId);
      if (away) throw new EngineUnavailable("away");
      if (key.volumeId === broken.volumeId) throw new Error("unreadable");
      return rig.directories.measure(key, signal);
    },
  });
  await expect.poll(() => tried.length).toBeGreaterThan(1);
  away = false;
  await expect.poll(() => tried.filter((id) => id === sound.volumeId).length).toBeGreaterThan(2);
});

test("those who ask for a measurement while one is under way share the next", async () => {
  const volume = await rig.createVolume("asked");
  const release = Promise.withResolvers<void>();
  let begun = 0;
  const measurer = measurerOf({
    ...rig.directories,
    measure: async () => {
      begun += 1;
      await release.promise;
      return { bytes: BigInt(begun), entries: 1 };
    },
  });
  const first = measurer.measure(volume);
  await expect.poll(() => begun).toBe(1);
  const others = [measurer.measure(volume), measurer.measure(volume), measurer.measure(volume)];
  release.resolve();
  await Promise.all([first, ...others]);
  expect(begun).toBe(2);
});
