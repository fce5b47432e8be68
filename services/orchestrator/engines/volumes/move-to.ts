import { rename } from "node:fs/promises";
import { fault, isCode } from "./faults.ts";
import { at } from "./place.ts";
import type { Place } from "./resolve.ts";

/**
 * In one step, over a file or an empty directory that is there by now.
 * @param path for what is said
 * @throws FileFault, or the kernel's error
 */
export async function moveTo(from: Buffer, to: Place, path: string): Promise<void> {
  if (to.name === undefined) throw fault("conflict", path, "is the volume's root");
  try {
    await rename(from, at(to.parent, to.name));
  } catch (error) {
    if (isCode(error, "ENOTEMPTY", "EEXIST"))
      throw fault("conflict", path, "is a directory with content");
    if (isCode(error, "EISDIR")) throw fault("conflict", path, "is a directory");
    if (isCode(error, "ENOTDIR")) throw fault("conflict", path, "is a file");
    if (isCode(error, "EINVAL")) throw fault("conflict", path, "lies within what is to go there");
    throw error;
  }
}
