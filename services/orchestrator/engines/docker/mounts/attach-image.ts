import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { EngineFailure } from "../../engine.ts";
import { createSlots } from "../../volumes/parallel.ts";
import { isAlive, nameGiverOf } from "../../volumes/second-name.ts";
import { attachLoop, detachLoop, type LoopDevice, listLoops } from "./loop-devices.ts";
import { type Identity, isSame } from "./places.ts";
import type { DiskMount } from "./plan.ts";
import type { Sources } from "./sources.ts";

/** The processes of a machine that was killed may be there for so long. */
const RELEASE_MS = 3_000;
/** What such a machine wrote may take so long to be in the image. */
const FLUSH_MS = 60_000;
const POLL_MS = 100;
/** As the kernel shows a file whose name was taken away. */
const NAMELESS = / \(deleted\)$/;

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
    await giveBack(device.path);
  }
}

async function attachInTime(mount: DiskMount, sources: Sources): Promise<LoopDevice> {
  const begun = performance.now();
  for (;;) {
    const found = await oneAtATime(() => attach(mount, sources));
    if ("device" in found) return found.device;
    const patience = (await isMounted(found.others)) ? RELEASE_MS : FLUSH_MS;
    if (performance.now() - begun > patience)
      throw new EngineFailure(
        `${mount.field}: ${JSON.stringify(mount.path)} is mounted already, and an image that is written to cannot be mounted twice`,
      );
    await sleep(POLL_MS);
  }
}

/** What else the image is, where that excludes this use of it. */
type Attached = { device: LoopDevice } | { others: LoopDevice[] };

async function attach(mount: DiskMount, sources: Sources): Promise<Attached> {
  const { identity } = sources.of(mount);
  const { readonly } = mount.flags;
  await detachAbandoned(sources.home(mount));
  const before = excluding(await listLoops(), identity, readonly);
  if (before.length > 0) return { others: before };
  const path = await attachFile(mount, sources);
  inHand.add(path);
  try {
    const loops = await listLoops();
    const device = loops.find((loop) => loop.path === path);
    if (!device || !isSame(device.image, identity) || device.readonly !== readonly)
      throw new Error("the image did not become a block device");
    const others = excluding(
      loops.filter((loop) => loop !== device),
      identity,
      readonly,
    );
    if (others.length > 0) await giveBack(path);
    return others.length > 0 ? { others } : { device };
  } catch (error) {
    await giveBack(path);
    throw error;
  }
}

// Who measures the volume may just have cleared away the name.
async function attachFile(mount: DiskMount, sources: Sources, left = 3): Promise<string> {
  try {
    return await sources.withName(mount, (file) => attachLoop(file, mount.flags.readonly));
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("losetup: ")) throw error;
    if (left > 1 && /No such file/.test(error.message))
      return await attachFile(mount, sources, left - 1);
    // Where that is on the host is nobody's business.
    throw new Error(error.message.replaceAll(/\/\S*\/staging\/[^\s:]*/g, "the image"));
  }
}

async function giveBack(path: string): Promise<void> {
  try {
    await detachLoop(path);
  } finally {
    inHand.delete(path);
  }
}

function excluding(loops: readonly LoopDevice[], image: Identity, readonly: boolean): LoopDevice[] {
  return loops.filter((loop) => isSame(loop.image, image) && !(loop.readonly && readonly));
}

/** Whether a process sees one of these mounted; if not, they are being written back, or about to be mounted. */
async function isMounted(loops: readonly LoopDevice[]): Promise<boolean> {
  const marks = loops.map(({ major, minor }) => ` ${major}:${minor} `);
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    // It may have ended.
    const text = await readFile(`/proc/${name}/mountinfo`, "utf8").catch(() => "");
    if (marks.some((mark) => text.includes(mark))) return true;
  }
  return false;
}

/**
 * Detaches what a process left that was killed: at once, or when the machine goes that has it mounted. Every device of ours was
 * attached by a second name of its image, which says by whom.
 * @param home the folder of all volumes, without links
 */
async function detachAbandoned(home: string): Promise<void> {
  for (const { path, autoclear, file } of await listLoops()) {
    if (autoclear || inHand.has(path) || !file.startsWith(home)) continue;
    const giver = nameGiverOf(file.slice(home.length).replace(NAMELESS, ""));
    if (giver && (giver.pid === process.pid || !(await isAlive(giver)))) await detachLoop(path);
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
