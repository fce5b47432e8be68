import type { Admit } from "../volume-store.ts";
import { type CopyJob, copyFile } from "./copy-file.ts";
import { copyTree } from "./copy-tree.ts";
import { fault, ofCaller } from "./faults.ts";
import { kindOf } from "./info.ts";
import { moveTo } from "./move-to.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { isWithin, parsePath } from "./paths.ts";
import { type Held, type HeldPlace, hold, type Place, resolve } from "./resolve.ts";
import { type Staged, stageApart } from "./staging.ts";
import { checkReplaceable, lookAhead } from "./write.ts";

export async function copy(
  volume: OpenVolume,
  from: string,
  to: string,
  admit: Admit,
  signal: AbortSignal,
): Promise<void> {
  const names = parsePath(to);
  await using origin = await hold(volume, parsePath(from), from, { links: "follow" });
  const source = copyable(origin, from);
  const options = { links: "follow", notBelow: origin.names } as const;
  const check = (place: Place) => checkFits(origin, source, place, to);
  await lookAhead(volume, names, to, options, check);
  await using staged = await stageApart(volume);
  await fill(volume, source, staged, { spend: spending(admit), signal });
  await using target = await resolve(volume, names, to, { ...options, make: true });
  check(target);
  await moveTo(staged.path, target, to);
  staged.placed();
}

function copyable({ found }: HeldPlace, path: string): Held {
  if (!found) throw fault("missing", path, "does not exist");
  if (!kindOf(found.stats)) throw fault("missing", path, "is neither file nor directory");
  return found;
}

function checkFits(origin: Place, { stats }: Held, target: Place, path: string): void {
  if (isWithin(target.names, origin.names))
    throw fault("conflict", path, "is what is to be copied");
  if (stats.isFile()) checkReplaceable(target, path);
  else if (target.found) throw fault("conflict", path, "is there already");
}

async function fill(volume: OpenVolume, source: Held, staged: Staged, job: CopyJob) {
  if (source.stats.isDirectory()) return copyTree(volume, source.handle, staged, job);
  const file = await staged.createFile();
  try {
    await copyFile(source.handle, file, job);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** Asks for all that is written so far and what is to come. */
function spending(admit: Admit): CopyJob["spend"] {
  let total = 0n;
  return async (bytes) => {
    total += BigInt(bytes);
    await ofCaller(() => admit(total));
  };
}
