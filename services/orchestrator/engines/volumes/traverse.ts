import { isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import type { Ladder } from "./ladder.ts";
import { NameList } from "./name-list.ts";
import { type Entry, entriesOf } from "./place.ts";

/**
 * `entered` and `left`: a directory, whose name is the last of the ladder's; the first is the one where it began.
 * `entries`: a part of what is in the one that was entered last. `below` tells which of them are to be entered.
 */
export type Step =
  | { kind: "entered"; directory: Handle }
  | { kind: "entries"; directory: Handle; entries: Entry[]; below(name: Buffer): void }
  | { kind: "left" };

/**
 * All directories from where a ladder stands, parents first. One that is gone, or no directory any more, when its turn comes
 * is passed over. Descriptors are few however deep it goes; of a directory only the names of those in it are kept.
 */
export async function* traverse(ladder: Ladder, signal: AbortSignal): AsyncGenerator<Step> {
  const levels: NameList[] = [];
  let directory: Handle | undefined = await ladder.here();
  for (;;) {
    signal.throwIfAborted();
    if (directory) {
      const names = new NameList();
      levels.push(names);
      yield { kind: "entered", directory };
      yield* parts(directory, names, signal);
    }
    const name = levels.at(-1)?.pop();
    if (name) {
      directory = await enter(ladder, name);
      continue;
    }
    directory = undefined;
    yield { kind: "left" };
    levels.pop();
    if (levels.length === 0) return;
    await ladder.up();
  }
}

async function* parts(
  directory: Handle,
  names: NameList,
  signal: AbortSignal,
): AsyncGenerator<Step> {
  const below = (name: Buffer) => names.push(name);
  for await (const entries of entriesOf(directory)) {
    signal.throwIfAborted();
    yield { kind: "entries", directory, entries, below };
  }
}

async function enter(ladder: Ladder, name: Buffer): Promise<Handle | undefined> {
  try {
    return await ladder.down(name);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR", "EXDEV")) return undefined;
    throw error;
  }
}
