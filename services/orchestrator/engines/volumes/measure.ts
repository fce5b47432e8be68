import type { BigIntStats } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { VolumeUse } from "../volume-store.ts";
import { type Handle, lookAt } from "./handle.ts";
import { bytesOf } from "./info.ts";
import { Ladder } from "./ladder.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { createSlots, inParallel } from "./parallel.ts";
import { at, type Entry } from "./place.ts";
import { traverse } from "./traverse.ts";

/** Of the process's four threads for files. */
const WIDTH = 2;

const REST_AFTER_MS = 20;

/** All measurements take turns, a part at a time: a sandbox that builds ahead of one for ever holds up no other. */
const inTurn = createSlots(1);

/** What a volume holds; rests for as long as it works, for users go first. */
export async function measure(volume: OpenVolume, signal: AbortSignal): Promise<VolumeUse> {
  const tally = new Tally();
  let worked = 0;
  await using ladder = new Ladder(volume.files, volume.dev);
  for await (const step of traverse(ladder, signal)) {
    if (step.kind !== "entries") continue;
    await inTurn(async () => {
      const begun = performance.now();
      for (const { name, stats } of await look(step.directory, step.entries))
        if (stats.isDirectory()) {
          tally.addDirectory();
          step.below(name);
        } else tally.add(stats);
      worked += performance.now() - begun;
      if (worked < REST_AFTER_MS) return;
      await sleep(worked);
      worked = 0;
    });
  }
  return tally.sum();
}

async function look(directory: Handle, entries: readonly Entry[]) {
  const found = await inParallel(entries, WIDTH, async ({ name }) => {
    const stats = await lookAt(at(directory, name));
    return stats && { name, stats };
  });
  return found.filter((one) => one !== undefined);
}

/**
 * Counts a file of n names by an n-th for each: all of them lie in its volume, so that makes it once, and which
 * were seen need not be remembered.
 */
export class Tally {
  #directories = 0;
  readonly #byNames = new Map<bigint, { bytes: bigint; names: number }>();

  addDirectory(): void {
    this.#directories += 1;
  }

  add(stats: BigIntStats): void {
    // It lost its last name just now.
    if (stats.nlink === 0n) return;
    const sum = this.#byNames.get(stats.nlink) ?? { bytes: 0n, names: 0 };
    sum.bytes += bytesOf(stats);
    sum.names += 1;
    this.#byNames.set(stats.nlink, sum);
  }

  sum(): VolumeUse {
    let bytes = 0n;
    let files = 0;
    for (const [nlink, sum] of this.#byNames) {
      bytes += sum.bytes / nlink;
      files += Math.ceil(sum.names / Number(nlink));
    }
    return { bytes, entries: this.#directories + files };
  }
}
