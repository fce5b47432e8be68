import { growth, RULE } from "./judge.ts";
import type { LoadOptions } from "./options.ts";
import type { Held } from "./processes.ts";
import type { Results } from "./results.ts";

export interface LoadReport {
  options: LoadOptions;
  warmUpMs: number;
  tookMs: number;
  warmUp: Results;
  results: Results;
  held: Held[];
  /** Of each table. */
  rows: { before: Map<string, number>; behind: Map<string, number> };
  database: { connections: number; mib: number; grewMib: number };
  /** Sandboxes and volumes that are destroyed and were not cleared away half a minute after the end. */
  unsettled: number;
  /** What processes logged as errors, and which ended. */
  troubles: string[];
}

/** Everything that must not be. */
export function faultsOf({ warmUp, results, held, unsettled, troubles }: LoadReport): string[] {
  return [
    ...warmUp.errorLines().map((line) => `${line}, in the warm-up`),
    ...results.errorLines(),
    ...held.flatMap(growth),
    ...(unsettled > 0 ? [`LEFT ${unsettled} destroyed sandboxes and volumes`] : []),
    ...troubles,
  ];
}

/** In Markdown. */
export function print(report: LoadReport): void {
  const faults = faultsOf(report);
  const lines = [
    ...summary(report),
    "",
    ...report.results.table(),
    "",
    ...processTable(report.held),
    "",
    RULE,
    "",
    ...rowLines(report),
    "",
    ...(faults.length === 0 ? ["no error, flat memory"] : faults),
  ];
  for (const line of lines) console.log(line);
}

function summary({ options, warmUpMs, tookMs, results, database }: LoadReport): string[] {
  const { minutes, rate, connections, seed, gateways } = options;
  const perSecond = (results.count / (tookMs / 1_000)).toFixed(1);
  return [
    `${minutes} minutes at ${rate} operations a second over ${connections} connections, ${gateways} gateways, seed ${seed}, behind a warm-up of ${(warmUpMs / 1_000).toFixed(0)} s`,
    `${results.count} operations, ${perSecond} a second, ${results.errors} errors; one began at most ${results.latestMs.toFixed(0)} ms late`,
    `${database.connections} connections to PostgreSQL; the database has ${database.mib.toFixed(0)} MiB, ${database.grewMib.toFixed(1)} MiB more than before`,
  ];
}

function processTable(held: readonly Held[]): string[] {
  const fixed = (value: number, digits = 0) => value.toFixed(digits);
  const rows = held.map(
    ({ name, rssMib, slopeMib, liveMib, files, lagP99Ms, lagMaxMs }) =>
      `| ${name} | ${fixed(rssMib.first)} to ${fixed(rssMib.last)} (${fixed(rssMib.most)}) | ${fixed(slopeMib, 2)} ` +
      `| ${fixed(liveMib.first, 1)} to ${fixed(liveMib.last, 1)} | ${files.first} to ${files.last} | ${fixed(lagP99Ms, 1)} / ${fixed(lagMaxMs, 1)} |`,
  );
  return [
    "| process | resident MiB, first to last quarter (most) | MiB a minute | live heap MiB | files, sockets | event loop late, p99 / max ms |",
    "|---|---|---|---|---|---|",
    ...rows,
  ];
}

function rowLines({ rows }: LoadReport): string[] {
  const all = [...rows.behind].map(([name, n]) => `${name} ${rows.before.get(name) ?? 0} to ${n}`);
  return [`rows: ${all.join(", ")}`];
}
