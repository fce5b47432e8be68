import type { Held } from "./processes.ts";

// Live heap is what cannot be freed: it may only grow as far as bounded caches fill.
const LIVE_MIB = 8;
const LIVE_SHARE = 0.15;
// Resident memory also has what V8 keeps for later, and moves by more.
const RSS_MIB = 32;
const RSS_SHARE = 0.2;
// Connections that come and go by themselves.
const FILES = 24;

/** How memory is judged, for people. */
export const RULE =
  `flat: live heap (garbage collected) grew by at most ${LIVE_MIB} MiB or ${LIVE_SHARE * 100} %, resident memory from the first quarter's ` +
  `median to the last's by at most ${RSS_MIB} MiB or ${RSS_SHARE * 100} %, open files and sockets by at most ${FILES}`;

/** What grew by more than it may. */
export function growth({ name, liveMib, rssMib, files }: Held): string[] {
  return [
    ...grown(`${name}: live heap in MiB`, liveMib, Math.max(LIVE_MIB, liveMib.first * LIVE_SHARE)),
    ...grown(`${name}: resident MiB`, rssMib, Math.max(RSS_MIB, rssMib.first * RSS_SHARE)),
    ...grown(`${name}: open files and sockets`, files, FILES),
  ];
}

function grown(what: string, { first, last }: { first: number; last: number }, most: number) {
  return last - first > most ? [`GREW ${what}: ${first.toFixed(0)} to ${last.toFixed(0)}`] : [];
}
