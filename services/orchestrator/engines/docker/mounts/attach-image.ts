import { setTimeout as sleep } from "node:timers/promises";
import { EngineFailure } from "../../engine.ts";
import { createSlots } from "../../volumes/parallel.ts";
import { attachLoop, detachLoop, type LoopDevice, listLoops } from "./loop-devices.ts";
import { type Identity, isSame } from "./places.ts";
import type { DiskMount } from "./plan.ts";
import type { Sources } from "./sources.ts";

/** A machine that has ended may take so long to give back what it had mounted. */
const RELEASE_MS = 5_000;
const POLL_MS = 50;
const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
/** The second name of an image, under which every device of ours was attached. */
const OURS = new RegExp(`^/${UUID}/${UUID}/staging/removed-${UUID}(?: \\(deleted\\))?$`);

// Devices are the host's, so this holds for all engines of this process: who looks first attaches first.
const oneAtATime = createSlots(1);
/** Attached by this process, and not mounted yet. */
const inHand = new Set<string>();

/**
 * Does something with an image as a block device. By the end it is detached, or goes with what it was mounted in. One image is
 * several devices only where none of them writes, whoever attached them.
 * @throws EngineFailure naming the field where somebody else has the image
 */
export async function withImage<T>(
  mount: DiskMount,
  sources: Sources,
  act: (device: LoopDevice) => Promise<T>,
): Promise<T> {
  const device = await attachInTime(mount, sources);
  try {
    return await act(device);
  } finally {
    await detachLoop(device.path);
    inHand.delete(device.path);
  }
}

async function attachInTime(mount: DiskMount, sources: Sources): Promise<LoopDevice> {
  const until = performance.now() + RELEASE_MS;
  for (;;) {
    const device = await oneAtATime(() => attach(mount, sources));
    if (device) return device;
    if (performance.now() > until)
      throw new EngineFailure(
        `${mount.field}: ${JSON.stringify(mount.path)} is mounted already, and an image that is written to cannot be mounted twice`,
      );
    await sleep(POLL_MS);
  }
}

/** @returns undefined: somebody else has the image */
async function attach(mount: DiskMount, sources: Sources): Promise<LoopDevice | undefined> {
  const { identity } = sources.of(mount);
  const { readonly } = mount.flags;
  await detachAbandoned(sources.home(mount));
  if (excludes(await listLoops(), identity, readonly)) return undefined;
  const path = await sources.withName(mount, (file) => attachLoop(file, readonly));
  inHand.add(path);
  try {
    const loops = await listLoops();
    const device = loops.find((loop) => loop.path === path);
    if (!device || !isSame(device.image, identity) || device.readonly !== readonly)
      throw new Error("the image did not become a block device");
    const others = loops.filter((loop) => loop !== device);
    if (!excludes(others, identity, readonly)) return device;
  } catch (error) {
    await giveBack(path);
    throw error;
  }
  await giveBack(path);
  return undefined;
}

async function giveBack(path: string): Promise<void> {
  await detachLoop(path);
  inHand.delete(path);
}

function excludes(loops: readonly LoopDevice[], image: Identity, readonly: boolean): boolean {
  const same = loops.filter((loop) => isSame(loop.image, image));
  return same.some((loop) => !loop.readonly || !readonly);
}

/**
 * Detaches what a process left that was killed: at once, or when the machine goes that has it mounted.
 * @param home the folder of all volumes, without links
 */
async function detachAbandoned(home: string): Promise<void> {
  for (const { path, autoclear, file } of await listLoops()) {
    const isOurs = file.startsWith(home) && OURS.test(file.slice(home.length));
    if (isOurs && !autoclear && !inHand.has(path)) await detachLoop(path);
  }
}

/** The device that a mounted image is, by where it is mounted; undefined: it is another file system. */
export async function deviceOf(
  mounted: Identity,
  image: Identity,
): Promise<LoopDevice | undefined> {
  return (await listLoops()).find(
    (loop) => loop.number === mounted.dev && isSame(loop.image, image),
  );
}

/** Sees to it that the device of a mounted image goes with the mount, also where its process was killed before that. */
export async function releaseWith(mounted: Identity, image: Identity): Promise<void> {
  const device = await deviceOf(mounted, image);
  if (!device) throw new Error("the image is no block device any more");
  if (!device.autoclear) await detachLoop(device.path);
}
