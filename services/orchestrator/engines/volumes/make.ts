import type { Located } from "./directory-volumes.ts";
import { fault } from "./faults.ts";
import { kindOf } from "./info.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { parsePath } from "./paths.ts";
import { again, makeDirectoryIn } from "./place.ts";
import { hold, resolve } from "./resolve.ts";

const TRIES = 100;

export async function makeDirectory(volume: OpenVolume, path: string): Promise<void> {
  const names = parsePath(path);
  for (let left = TRIES; left > 0; left--) {
    await using place = await resolve(volume, names, path, { links: "follow", make: true });
    const { found, parent, name } = place;
    if (found && kindOf(found.stats) === "directory") return;
    if (found) throw fault("conflict", path, "is no directory");
    if (name === undefined) throw new Error("the root is always there");
    // What somebody put there in between is looked at in the next round.
    await makeDirectoryIn(parent, name);
  }
  throw fault("conflict", path, "changes all the time");
}

export async function locate(volume: OpenVolume, path: string): Promise<Located> {
  await using place = await hold(volume, parsePath(path), path, { links: "follow" });
  if (!place.found) throw fault("missing", path, "does not exist");
  const kind = kindOf(place.found.stats);
  if (!kind) throw fault("missing", path, "is neither file nor directory");
  return { handle: await again(place.found.handle), kind };
}
