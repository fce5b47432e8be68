import { open } from "node:fs/promises";
import type { Located } from "./directory-volumes.ts";
import { fault, isCode } from "./faults.ts";
import { kindOf } from "./info.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { again, at, CREATE, makeDirectoryIn } from "./place.ts";
import { hold, type Place, resolve } from "./resolve.ts";

const FILE_MODE = 0o644;
const TRIES = 100;

export async function makeDirectory(volume: OpenVolume, path: string): Promise<void> {
  await make(volume, path, "directory", "follow");
}

export async function makeMountPoint(
  volume: OpenVolume,
  path: string,
  kind: Located["kind"],
): Promise<void> {
  await make(volume, path, kind, "never");
}

async function make(
  volume: OpenVolume,
  path: string,
  kind: Located["kind"],
  links: "follow" | "never",
): Promise<void> {
  const names = parsePath(path);
  for (let left = TRIES; left > 0; left--) {
    await using place = await resolve(volume, names, path, { links, make: true });
    const { found } = place;
    if (found && kindOf(found.stats) === kind) return;
    if (found) throw fault("conflict", path, `is no ${kind}`);
    await makeLast(place, kind);
  }
  throw fault("conflict", path, "changes all the time");
}

/** What somebody put there in between is looked at in the next round. */
async function makeLast({ parent, name }: Place, kind: Located["kind"]): Promise<void> {
  if (name === undefined) throw new Error("the root is always there");
  if (kind === "directory") return makeDirectoryIn(parent, name);
  try {
    await (await open(at(parent, name), CREATE, FILE_MODE)).close();
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
}

export async function locate(volume: OpenVolume, path: string): Promise<Located> {
  await using place = await hold(volume, parsePath(path), path, { links: "follow" });
  if (!place.found) throw fault("missing", path, "does not exist");
  const kind = kindOf(place.found.stats);
  if (!kind) throw fault("missing", path, "is neither file nor directory");
  return { handle: await again(place.found.handle), kind };
}
