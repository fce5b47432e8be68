import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ServiceError } from "../../../runtime/errors.ts";
import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import type { FilesContext } from "../../../services/orchestrator/domain/files/context.ts";
import { Room } from "../../../services/orchestrator/domain/files/room.ts";
import type { VolumeKey } from "../../../services/orchestrator/engines/volume-store.ts";
import { setLimits } from "../sandbox/support.ts";
import { asCaller, upload } from "./files-support.ts";
import { createVolumeSystem, type VolumeSystem } from "./volumes-support.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;

let rig: VolumeSystem;
let volume: VolumeKey;
let made = 0;
beforeAll(async () => {
  rig = await createVolumeSystem();
});
afterAll(() => rig.close());
beforeEach(async () => {
  made += 1;
  volume = await rig.createVolume(`data-${made}`, 1);
});

afterEach(async () => {
  const { volumes } = await rig.system.volumes.listVolumes({}, as());
  for (const { id } of volumes) await rig.system.volumes.deleteVolume({ id }, as());
});

const as = () => asCaller(rig.system.caller);

/** Leaves so much room in a volume of 1 GiB. */
async function leave(bytes: number): Promise<void> {
  await rig.allocate(volume, "ballast", GIB - bytes);
}

/** How many bytes the volume holds. */
async function held(): Promise<number> {
  const { bytes } = await rig.directories.measure(volume, new AbortController().signal);
  return Number(bytes);
}

function* pieces(bytes: number) {
  for (let left = bytes; left > 0; left -= MIB) yield Buffer.alloc(Math.min(left, MIB), 1);
}

/** @returns "written", or why it was refused */
async function write(path: string, bytes: number, declared: boolean): Promise<string> {
  const target = { volumeId: volume.volumeId, path };
  const length = declared ? { length: BigInt(bytes) } : {};
  const files = made % 2 === 0 ? rig.inProcess : rig.socket;
  return files.writeFile(upload({ ...target, ...length }, pieces(bytes)), as()).then(
    () => "written",
    (error: unknown) => {
      const { reason, metadata } = fromConnectError(error) ?? {};
      return `${reason} ${metadata?.quota}`;
    },
  );
}

async function promised() {
  return rig.system.database.query(
    "SELECT id FROM sandbox.volume_writes WHERE volume_id = $1::uuid AND settled_at IS NULL",
    volume.volumeId,
  );
}

test.each([true, false])(
  "parallel writers take what there is and no more; length named: %s",
  async (declared) => {
    await leave(10 * MIB);
    const told = await Promise.all(
      Array.from({ length: 8 }, (_, i) => write(`/w${i}`, 2 * MIB, declared)),
    );
    const written = told.filter((word) => word === "written").length;
    expect(written).toBeGreaterThan(0);
    expect(new Set(told)).toEqual(new Set(["written", "QUOTA_EXCEEDED capacity_gib"]));
    if (declared) expect(written).toBe(5);
    expect(await held()).toBe(GIB - 10 * MIB + written * 2 * MIB);
    expect(await promised()).toEqual([]);
  },
);

test("of a file that grows too large nothing is left, and its room is given back", async () => {
  await leave(10 * MIB);
  expect(await write("/grows", 12 * MIB, false)).toBe("QUOTA_EXCEEDED capacity_gib");
  expect(await write("/known", 12 * MIB, true)).toBe("QUOTA_EXCEEDED capacity_gib");
  expect(await held()).toBe(GIB - 10 * MIB);
  expect(await promised()).toEqual([]);
  expect(await write("/fits", 10 * MIB, false)).toBe("written");
});

test("a file that replaces another one needs room for both", async () => {
  await leave(10 * MIB);
  expect(await write("/f", 6 * MIB, true)).toBe("written");
  expect(await write("/f", 6 * MIB, true)).toBe("QUOTA_EXCEEDED capacity_gib");
  expect(await held()).toBe(GIB - 4 * MIB);
});

test("a copy takes room too", async () => {
  await leave(10 * MIB);
  expect(await write("/f", 6 * MIB, true)).toBe("written");
  const copy = { volumeId: volume.volumeId, from: "/f", to: "/g" };
  await expect(rig.inProcess.copyFile(copy, as())).rejects.toThrow("quota");
  expect(await held()).toBe(GIB - 4 * MIB);
  expect(await promised()).toEqual([]);
});

test("what was removed is room at once, though nothing was measured since", async () => {
  await leave(1 * MIB);
  expect(await write("/f", 4 * MIB, true)).toBe("QUOTA_EXCEEDED capacity_gib");
  await rig.inProcess.removeFile({ volumeId: volume.volumeId, path: "/ballast" }, as());
  expect(await write("/f", 4 * MIB, true)).toBe("written");
});

test("what was written before there was a capacity counts, though nothing was measured since", async () => {
  volume = await rig.createVolume(`late-${made}`);
  await rig.allocate(volume, "ballast", GIB - 10 * MIB);
  expect(await write("/f", 8 * MIB, true)).toBe("written");
  await rig.system.volumes.updateVolume({ id: volume.volumeId, capacity: { gib: 1 } }, as());
  expect(await write("/g", 4 * MIB, true)).toBe("QUOTA_EXCEEDED capacity_gib");
  expect(await write("/g", 2 * MIB, false)).toBe("written");
  expect(await held()).toBe(GIB);
});

test("an organization's limit counts its other volumes, measured anew as well", async () => {
  const { database, caller } = rig.system;
  const other = await rig.createVolume(`other-${made}`);
  await rig.allocate(other, "ballast", GIB);
  await setLimits(database, caller.orgId, { max_total_storage_gib: 1 });
  try {
    expect(await write("/f", MIB, true)).toBe("QUOTA_EXCEEDED max_total_storage_gib");
    await rig.inProcess.removeFile({ volumeId: other.volumeId, path: "/ballast" }, as());
    expect(await write("/f", MIB, true)).toBe("written");
  } finally {
    await setLimits(database, caller.orgId, {});
  }
});

test("where nothing is capped nobody is asked, and little where something is", async () => {
  const asked: bigint[] = [];
  const refuse = (_caller: unknown, _volume: unknown, _write: unknown, bytes: bigint) => {
    asked.push(bytes);
    if (bytes > 100n * BigInt(MIB)) throw new ServiceError("QUOTA_EXCEEDED", "no");
    return Promise.resolve();
  };
  const settled: bigint[] = [];
  const settle = async (_caller: unknown, _write: unknown, bytes: bigint) => {
    settled.push(bytes);
  };
  // What else the context has is not asked for.
  const ctx = {
    calls: { reserve: async (...of: Parameters<typeof refuse>) => refuse(...of), settle },
  };
  const roomOf = (capped: boolean) =>
    new Room(ctx as unknown as FilesContext, rig.system.caller, volume, capped);
  const uncapped = roomOf(false);
  for (let i = 1n; i <= 100n; i += 1n) await uncapped.admit(i * BigInt(MIB));
  await uncapped.settle(uncapped.taken);
  expect([asked, settled]).toEqual([[], []]);
  const capped = roomOf(true);
  for (let i = 1n; i <= 100n; i += 1n) await capped.admit(i * BigInt(MIB));
  await capped.settle(capped.taken);
  expect(asked.length).toBeLessThan(50);
  expect(settled).toEqual([100n * BigInt(MIB)]);
});
