import type { Facts } from "./facts.ts";
import type { Journal } from "./journal.ts";
import type { ChaosOptions } from "./options.ts";
import type { Blow } from "./schedule.ts";

export interface Outcome {
  options: ChaosOptions;
  dealt: Blow[];
  journal: Journal;
  facts: Facts;
  /** Empty: every invariant holds. */
  faults: string[];
  ms: number;
  /** How often each process ended by itself; at a start without a database, for one. */
  crashes: [string, number][];
}

/** How many faults are shown with all that is known of their sandbox. */
const SHOWN = 5;

/** What a person has to know of a run, in lines. */
export function tell(outcome: Outcome): string[] {
  const { dealt, journal, facts, faults, ms, options, crashes } = outcome;
  const blows = Map.groupBy(dealt, ({ kind, victim }) => `${kind} ${victim}`);
  return [
    `blows: ${list([...blows].map(([name, all]) => [name, all.length]))}`,
    `operations: ${list(journal.counts())}`,
    `failures: ${list(failuresOf(facts))}`,
    `processes that ended by themselves: ${list(crashes.filter(([, count]) => count > 0))}`,
    `left: ${facts.sandboxes.length} sandboxes, ${facts.runs.length} runs, ${facts.events.length} events, ${facts.machines.length} machines, ${facts.starts.length} starts`,
    `of volumes: ${facts.volumes.rows.length}, ${filesOf(facts)} files, ${facts.volumes.samples.length} measurements`,
    `seed ${options.seed}, ${(ms / 1_000).toFixed(0)} s: ${faults.length === 0 ? "every invariant holds" : `${faults.length} BROKEN`}`,
    ...faults.map((fault) => `BROKEN ${fault}`),
    ...faults.slice(0, SHOWN).flatMap((fault) => storyOf(fault, outcome)),
  ];
}

function filesOf({ volumes }: Facts): number {
  return volumes.disk.volumes.reduce((sum, { files }) => sum + Object.keys(files).length, 0);
}

function failuresOf({ sandboxes }: Facts): [string, number][] {
  const messages = Map.groupBy(sandboxes, ({ failure }) => failure);
  return [...messages].flatMap(([message, all]) => (message ? [[message, all.length]] : []));
}

function list(counts: readonly (readonly [string, number])[]): string {
  return counts.map(([name, count]) => `${name} ${count}`).join(", ") || "none";
}

/** Everything that is known of a volume; empty: it is none. */
function volumeStory(id: string, { volumes }: Facts, { book }: Journal): string[] {
  const { rows, events, accruals, samples, disk } = volumes;
  const known = book.volumes.filter((volume) => volume.id === id);
  const files = known.flatMap((volume) =>
    [...volume.files].map(([path, { may, sure }]) => ({ path, may: [...may], sure })),
  );
  const told = [
    ...known.map(({ files: _, ...rest }) => rest),
    ...[...rows, ...disk.volumes].filter((each) => each.id === id),
    ...[...events, ...accruals, ...samples].filter(({ volumeId }) => volumeId === id),
    ...files,
  ];
  if (told.length === 0) return [];
  return [`  volume ${id}:`, ...told.map((each) => `    ${JSON.stringify(each)}`)];
}

/** Everything that is known of the sandbox, or the volume, that a fault names. */
function storyOf(fault: string, { facts, journal }: Outcome): string[] {
  const id = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(fault)?.[0];
  if (id === undefined) return [];
  const volume = volumeStory(id, facts, journal);
  if (volume.length > 0) return volume;
  const own = <T extends { sandboxId?: string | undefined }>(all: readonly T[]) =>
    all.filter(({ sandboxId }) => sandboxId === id);
  const events = own(facts.events).map(
    ({ at, type, client }) => `    ${at.toISOString()} ${type} by ${client ?? "the system"}`,
  );
  const asked = own(journal.attempts).map(
    ({ at, client, operation, action, outcome, answer }) =>
      `    ${new Date(at).toISOString()} ${client} #${operation} ${action}: ${outcome} (${answer})`,
  );
  const plain = (all: readonly object[]) => all.map((each) => `    ${JSON.stringify(each)}`);
  return [
    `  sandbox ${id}:`,
    ...plain(facts.sandboxes.filter((sandbox) => sandbox.id === id)),
    "  events:",
    ...events,
    "  asked:",
    ...asked,
    "  runs, machines, starts:",
    ...plain([...own(facts.runs), ...own(facts.machines), ...own(facts.starts)]),
  ];
}
