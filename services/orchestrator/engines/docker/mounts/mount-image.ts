import type { FileHandle } from "node:fs/promises";
import { unlink } from "node:fs/promises";
import { EngineFailure } from "../../engine.ts";
import type { HostProcess } from "../gate/held-process.ts";
import { withImage } from "./attach-image.ts";
import { FSTYPES, isFstype, isReadOnly, optionsOf } from "./file-systems.ts";
import type { LoopDevice } from "./loop-devices.ts";
import { mountIn } from "./mount-program.ts";
import { isCode, openPlace } from "./places.ts";
import type { DiskMount } from "./plan.ts";
import { runProgram } from "./run-program.ts";
import type { Sources } from "./sources.ts";
import { STAGE } from "./stage.ts";

/** On the stage, while it is mounted from. */
const NODE = "disk";

/**
 * Mounts an image in a machine that is held at its gate. The device is detached when the machine goes, whoever is there
 * to see it.
 * @param flags as `mount` names them
 * @throws EngineFailure naming the field where the image cannot be mounted
 */
export async function mountImage(
  { first, root }: { first: HostProcess; root: FileHandle },
  mount: DiskMount,
  sources: Sources,
  flags: readonly string[],
): Promise<void> {
  await withImage(mount, sources, async (device) => {
    const fstype = mount.fstype ?? (await detect(device, mount));
    if (isReadOnly(fstype) && !mount.flags.readonly)
      throw new EngineFailure(
        `${mount.label}.options.readonly: a ${fstype} image can only be mounted read-only`,
      );
    const options = [...flags, ...optionsOf(fstype)].join();
    await withNode(root, device, (node) =>
      mountIn(first, ["-t", fstype, "-o", options, node, mount.guest]).catch((error: unknown) => {
        throw asFailure(error, mount, fstype);
      }),
    );
  });
}

// On the host, which sees the device under a path of its own.
async function detect({ path }: LoopDevice, { field }: DiskMount): Promise<string> {
  const args = ["-p", "-s", "TYPE", "-o", "value", path];
  const { code, out, err } = await runProgram("blkid", args);
  const [found = ""] = out.trim().split("\n");
  if (code !== 0 && code !== NOTHING_FOUND && code !== AMBIVALENT) throw new Error(err.trim());
  if (isFstype(found)) return found;
  const what = found === "" ? "none was found" : `it holds ${JSON.stringify(found)}`;
  throw new EngineFailure(
    `${field}: is to hold one file system of ${FSTYPES.join(", ")}, without partitions: ${what}`,
  );
}

/** What blkid ends with. */
const NOTHING_FOUND = 2;
const AMBIVALENT = 8;

/** The devices that a machine may use do not include it: the node is for the mount alone. */
async function withNode<T>(
  root: FileHandle,
  { major, minor }: LoopDevice,
  act: (path: string) => Promise<T>,
): Promise<T> {
  await removeNode(root);
  const stage = await openPlace(root, STAGE);
  try {
    const args = ["-m", "600", `/proc/self/fd/3/${NODE}`, "b", String(major), String(minor)];
    const { code, err } = await runProgram("mknod", args, stage.fd);
    if (code !== 0) throw new Error(err.trim() || `mknod ended with ${code}`);
    return await act(`${STAGE}/${NODE}`);
  } finally {
    await stage.close();
    await removeNode(root);
  }
}

/** Also that of somebody who was cut off. */
export async function removeNode(root: FileHandle): Promise<void> {
  const stage = await openPlace(root, STAGE);
  try {
    await unlink(`/proc/self/fd/${stage.fd}/${NODE}`).catch((error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
    });
  } finally {
    await stage.close();
  }
}

function asFailure(error: unknown, { field, guest }: DiskMount, fstype: string): unknown {
  if (!(error instanceof Error)) return error;
  if (/wrong fs type|can't read superblock/.test(error.message))
    return new EngineFailure(`${field}: holds no ${fstype} file system that can be mounted`);
  if (/read-only/.test(error.message))
    return new EngineFailure(
      `${field}: was not unmounted cleanly, and is to be mounted writable once before it is mounted read-only`,
    );
  const why = error.message.replaceAll(`${STAGE}/${NODE}`, "the image");
  return new EngineFailure(`${field}: cannot be mounted at ${guest} as ${fstype}: ${why}`);
}
