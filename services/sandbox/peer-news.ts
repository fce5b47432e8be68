import { type Change, STATUSES } from "./domain/sandbox.ts";

/** What a sandbox process tells the others. */
export interface News {
  /** Of one life of one process. */
  from: string;
  /** How many batches of changes it has had, this one included; of which some may never have been told. */
  batches: number;
  /** None: it only says that it lives. */
  changes: readonly Change[];
  /** It has told everything, and ends. */
  bye?: boolean;
}

/** Most changes of one message, which PostgreSQL wants to have fewer than 8,000 bytes. */
export const MOST_CHANGES = 80;

export function writeNews({ from, batches, changes, bye }: News): string {
  const rows = changes.map(({ sandboxId, status, generation, destroyed }) => [
    sandboxId,
    STATUSES.indexOf(status),
    generation,
    destroyed ? 1 : 0,
  ]);
  return JSON.stringify([from, batches, rows, ...(bye ? [1] : [])]);
}

/** @returns undefined where it is not understood, as of another release */
export function readNews(text: string): News | undefined {
  try {
    const [from, batches, rows, bye] = JSON.parse(text);
    if (typeof from !== "string" || !Number.isSafeInteger(batches)) return undefined;
    return { from, batches, changes: rows.map(readChange), bye: bye === 1 };
  } catch {
    return undefined;
  }
}

function readChange([sandboxId, at, generation, destroyed]: unknown[]): Change {
  const status = STATUSES[Number(at)];
  if (typeof sandboxId !== "string" || status === undefined || !Number.isSafeInteger(generation))
    throw new Error("not a change");
  return { sandboxId, status, generation: Number(generation), destroyed: destroyed === 1 };
}
