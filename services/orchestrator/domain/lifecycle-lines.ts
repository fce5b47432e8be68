import type { RunState } from "../store.ts";

/** A lifecycle line of a run, and the bit that says in a cursor that it was read. */
export interface LifecycleLine {
  bit: bigint;
  at: Date;
  text: string;
  /** Nothing of the run comes after it. */
  isLast: boolean;
}

// A line's place is its bit for good: cursors refer to it.
const LINES: readonly { at: (run: RunState) => Date | null; text: (run: RunState) => string }[] = [
  { at: ({ admittedAt }) => admittedAt, text: () => "the start was admitted" },
  { at: ({ placedAt }) => placedAt, text: () => "the run was placed" },
  { at: ({ runningAt }) => runningAt, text: () => "the machine is up" },
  { at: ({ stopAdmittedAt }) => stopAdmittedAt, text: () => "a stop was asked for" },
  {
    at: ({ closedAt }) => closedAt,
    text: ({ failure }) => (failure === null ? "the run ended" : `the run failed: ${failure}`),
  },
];

/** The lines that a run's row gives and that were not read, oldest first. Pure. */
export function unreadLines(run: RunState, read: bigint): LifecycleLine[] {
  const lines = LINES.flatMap(({ at, text }, i) => {
    const time = at(run);
    const bit = 1n << BigInt(i);
    if (time === null || (read & bit) !== 0n) return [];
    const isLast = i === LINES.length - 1;
    return [{ bit, at: time, text: `sandgate: ${text(run)}\n`, isLast }];
  });
  return lines.sort((a, b) => a.at.getTime() - b.at.getTime());
}
