import { type FileHandle, rmdir } from "node:fs/promises";
import { EngineFailure } from "../../engine.ts";
import type { HostProcess } from "../gate/held-process.ts";
import { deviceOf, releaseWith } from "./attach-image.ts";
import { isFstype } from "./file-systems.ts";
import { mountImage, removeNode } from "./mount-image.ts";
import { mountIn } from "./mount-program.ts";
import { type MountEntry, parseMountinfo } from "./mountinfo.ts";
import {
  describePlace,
  isCode,
  isSame,
  lookAt,
  openPlace,
  openRoot,
  type Place,
  PlaceFault,
} from "./places.ts";
import { type DiskMount, isWithin, type MountFlags, type PlannedMount, volumesOf } from "./plan.ts";
import type { Sources } from "./sources.ts";
import { STAGE, stageOf } from "./stage.ts";

export const ANOTHER_FOLDER = "the folder of volumes is not the one that the sandbox was made with";

/** Of a new tmpfs: everybody may write, and nobody may remove what is another's. */
const ANYBODY = 0o1777;

/** What is to be mounted, and what that is. */
export interface MountWork {
  /** Parents first. */
  plan: readonly PlannedMount[];
  sources: Sources;
}

/** A machine that is held at its gate. */
interface Held {
  first: HostProcess;
  root: FileHandle;
}

/**
 * Makes the mounts of a machine that is held at its gate: from the stage to where they belong, in the machine's own
 * view, in which nothing but the sandbox's disk and its volumes is to be seen. Other sandboxes may change a volume
 * meanwhile: what is mounted in the end, and where, is looked at without following a link, and has to be what was looked
 * up in the volume itself. May be repeated where it was cut off.
 * @throws EngineFailure, or Error: the machine is not to run then
 */
export async function makeMounts(
  first: HostProcess,
  { plan, sources }: MountWork,
  workdir: string,
): Promise<void> {
  const held: Held = { first, root: await openRoot(first.fd) };
  try {
    for (const volumeId of volumesOf(plan)) await checkStage(held, volumeId, sources);
    for (const mount of plan)
      await naming(mount, () => make(held, mount, sources, isParent(mount, plan)));
    // A file system that is read-only as a whole was so from the beginning.
    for (const mount of plan)
      if (mount.flags.readonly && mount.kind !== "disk" && isParent(mount, plan))
        await naming(mount, () => seal(held, mount));
    await makeWorkdir(held, plan, workdir);
    for (const mount of plan) await naming(mount, () => verify(held, mount, sources));
    await clearStage(held, plan);
  } finally {
    await held.root.close();
  }
}

/** Whether volumes are still on their stage, so that nobody has made this machine's mounts. */
export async function isStaged(first: HostProcess): Promise<boolean> {
  return (await mountsOf(first)).some(({ at }) => isWithin(at, STAGE));
}

async function naming<T>({ label, guest }: PlannedMount, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof EngineFailure) throw error;
    if (error instanceof PlaceFault)
      throw new EngineFailure(`${label}.guest: ${JSON.stringify(guest)} ${error.message}`);
    if (isCode(error, "EROFS"))
      throw new EngineFailure(
        `${label}.guest: ${JSON.stringify(guest)} is not there, and lies in what is mounted read-only`,
      );
    throw new EngineFailure(`${label}: could not be mounted at ${guest}: ${messageOf(error)}`);
  }
}

function isParent({ guest }: PlannedMount, plan: readonly PlannedMount[]): boolean {
  return plan.some((other) => other.guest !== guest && isWithin(other.guest, guest));
}

// One that was cleared was cleared by somebody who was cut off after that: everything is in its place, or will be missed.
async function checkStage({ root }: Held, volumeId: string, sources: Sources): Promise<void> {
  const place = await lookAt(root, stageOf(volumeId));
  if (place && !isSame(place.identity, sources.root(volumeId).identity))
    throw new EngineFailure(ANOTHER_FOLDER);
}

async function make(
  held: Held,
  mount: PlannedMount,
  sources: Sources,
  isParent: boolean,
): Promise<void> {
  if (await isMade(held, mount, sources)) return;
  // What is yet to be mounted in it may need a place made there.
  const flags = flagsOf({ ...mount.flags, readonly: mount.flags.readonly && !isParent });
  if (mount.kind === "tmpfs") {
    // As the runtime has it: what was there lends it its mode.
    const { mode } = (await lookAt(held.root, mount.guest)) ?? { mode: ANYBODY };
    await makePoint(held, mount, "directory");
    const options = [...flags, `size=${mount.sizeMib}m`, `mode=${mode.toString(8)}`];
    return await mountIn(held.first, ["-t", "tmpfs", "-o", options.join(), "tmpfs", mount.guest]);
  }
  if (mount.kind === "disk") {
    await makePoint(held, mount, "directory");
    return await mountImage(held, mount, sources, flagsOf(mount.flags));
  }
  const { kind, path } = sources.of(mount);
  await makePoint(held, mount, kind);
  const stage = stageOf(mount.volumeId);
  const options = ["bind", ...flags, ...(await inherited(held, stage))];
  await mountIn(held.first, ["-o", options.join(), `${stage}${path}`, mount.guest]);
}

async function makePoint(
  { root }: Held,
  { label, guest }: PlannedMount,
  kind: "file" | "directory",
): Promise<void> {
  const handle = await openPlace(root, guest, kind);
  try {
    const place = await describePlace(handle);
    if (place.kind !== kind)
      throw new EngineFailure(`${label}.guest: ${JSON.stringify(guest)} is no ${kind}`);
  } finally {
    await handle.close();
  }
}

function flagsOf({ readonly, noexec, nosuid, nodev }: MountFlags): string[] {
  return [
    readonly ? "ro" : "rw",
    ...(noexec ? ["noexec"] : []),
    ...(nosuid ? ["nosuid"] : []),
    ...(nodev ? ["nodev"] : []),
  ];
}

// What the operator's own file system is mounted without stays so.
async function inherited({ first }: Held, path: string): Promise<string[]> {
  const entry = (await mountsOf(first)).findLast(({ at }) => at === path);
  return ["noexec", "nosuid", "nodev"].filter((flag) => entry?.options.includes(flag));
}

// A mount's flags are set all at once: those that it has are said again.
async function seal({ first, root }: Held, { guest }: PlannedMount): Promise<void> {
  const { entry } = (await mounted({ first, root }, guest)) ?? {};
  const flags = ["noexec", "nosuid", "nodev"].filter((flag) => entry?.options.includes(flag));
  await mountIn(first, ["-o", ["remount", "bind", "ro", ...flags].join(), "none", guest]);
}

/** What is mounted exactly there, and to be seen. */
async function mounted(
  { first, root }: Held,
  guest: string,
): Promise<{ place: Place; entry: MountEntry } | undefined> {
  const place = await lookAt(root, guest);
  if (!place) return undefined;
  const entry = (await mountsOf(first)).find(({ id }) => id === place.mountId);
  return entry?.at === guest ? { place, entry } : undefined;
}

async function isMade(held: Held, mount: PlannedMount, sources: Sources): Promise<boolean> {
  const found = await mounted(held, mount.guest);
  if (!found) return false;
  if (mount.kind === "volume") return isSame(found.place.identity, sources.of(mount).identity);
  const { type, superOptions } = found.entry;
  if (mount.kind === "disk") {
    const device = await deviceOf(found.place.identity, sources.of(mount).identity);
    return (
      device?.readonly === mount.flags.readonly &&
      isFstype(type) &&
      [null, type].includes(mount.fstype)
    );
  }
  return type === "tmpfs" && superOptions.includes(`size=${mount.sizeMib * 1024}k`);
}

async function verify(held: Held, mount: PlannedMount, sources: Sources): Promise<void> {
  const found = await mounted(held, mount.guest);
  if (!found || !(await isMade(held, mount, sources)))
    throw new Error("somebody changed its volume meanwhile");
  const { entry } = found;
  const missing = flagsOf(mount.flags).find((flag) => !entry.options.includes(flag));
  if (missing !== undefined) throw new Error(`the mount did not become ${missing}`);
  if (mount.kind === "disk") await verifyImage(mount, found, sources);
}

async function verifyImage(
  mount: DiskMount,
  { place, entry }: { place: Place; entry: MountEntry },
  sources: Sources,
): Promise<void> {
  // So the kernel makes one that it finds at fault.
  if (!mount.flags.readonly && !entry.superOptions.includes("rw"))
    throw new Error("its file system can only be read");
  await releaseWith(place.identity, sources.of(mount).identity);
}

/** As Docker would have made it, had it made the mounts. */
async function makeWorkdir(
  { root }: Held,
  plan: readonly PlannedMount[],
  workdir: string,
): Promise<void> {
  if (!plan.some(({ guest }) => isWithin(workdir, guest))) return;
  try {
    await (await openPlace(root, workdir, "directory")).close();
  } catch (error) {
    // Where a link leads is known once it is entered.
    if (error instanceof PlaceFault && error.why === "link") return;
    const path = JSON.stringify(workdir);
    const why = error instanceof PlaceFault ? error.message : `cannot be made: ${messageOf(error)}`;
    throw new EngineFailure(`workdir: ${path} ${why}`);
  }
}

/**
 * Takes the volumes from their stage. A mount goes with its mount point, where that is removed by somebody who does not see
 * the mount: no program of the sandbox's disk has to be run for it.
 */
async function clearStage({ first, root }: Held, plan: readonly PlannedMount[]): Promise<void> {
  await removeNode(root);
  const stage = await openPlace(root, STAGE);
  try {
    for (const volumeId of volumesOf(plan))
      await rmdir(`/proc/self/fd/${stage.fd}/${volumeId}`).catch((error: unknown) => {
        if (!isCode(error, "ENOENT")) throw error;
      });
  } finally {
    await stage.close();
  }
  const stages = volumesOf(plan).map(stageOf);
  if ((await mountsOf(first)).some(({ at }) => stages.includes(at)))
    throw new Error("volumes could not be taken from their stage");
}

async function mountsOf(first: HostProcess): Promise<MountEntry[]> {
  return parseMountinfo((await first.read("mountinfo")).toString());
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
