import type { EventRow, Facts, RunRow } from "../facts.ts";

const LETTERS: Readonly<Record<string, string>> = {
  sandbox_created: "C",
  sandbox_started: "s",
  sandbox_running: "r",
  sandbox_stop_requested: "q",
  sandbox_stopped: "e",
  sandbox_failed: "f",
  sandbox_destroyed: "D",
};

// A run is admitted, may come up, and ends once: by itself, or after it was asked to.
const RUN = "sr?q?[ef]";
/** The last run may be open, or cut off by the destroy. */
const HISTORY = new RegExp(`^C(${RUN})*(sr?q?)?D?$`);

const STATUS_AFTER: Readonly<Record<string, string>> = {
  C: "created",
  r: "running",
  e: "stopped",
  f: "failed",
  D: "gone",
};

/** Each change of state has exactly one event, in order: a sandbox's events are a path through its lifecycle. */
export function histories({ events, sandboxes, runs }: Facts): string[] {
  const statuses = new Map(sandboxes.map(({ id, status }) => [id, status]));
  const runsOf = Map.groupBy(runs, ({ sandboxId }) => sandboxId);
  const eventsOf = Map.groupBy(events, ({ sandboxId }) => sandboxId);
  const broken = [...eventsOf].flatMap(([id, own]) =>
    faultsOf(id, own, statuses.get(id) ?? "gone", runsOf.get(id) ?? []),
  );
  const silent = sandboxes.filter(({ id }) => !eventsOf.has(id));
  return [...broken, ...silent.map(({ id }) => `${id} has no events`)];
}

function faultsOf(
  id: string,
  events: readonly EventRow[],
  status: string,
  runs: readonly RunRow[],
): string[] {
  const history = events.map(({ type }) => LETTERS[type] ?? "").join("");
  const last = history.at(-1) ?? "";
  const faults = [];
  if (!HISTORY.test(history)) faults.push(`${id}: its events ${history} are no life`);
  if (STATUS_AFTER[last] !== status)
    faults.push(`${id}: its events ${history} end otherwise than in ${status}`);
  const starts = history.split("s").length - 1;
  if (starts !== runs.length) faults.push(`${id}: ${starts} starts, but ${runs.length} runs`);
  return faults;
}
