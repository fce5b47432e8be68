// Sandgate beside what a user could write by hand, in turn on one PostgreSQL: requests a second, and CPU of each part.
// npm run bench -- [--rows …] [--contenders …] [--seconds N] [--rounds N] [--warmup N] [--connections N] [--write]
import { openArena } from "./compare/arena.ts";
import { latency } from "./compare/latency.ts";
import { type Options, readOptions } from "./compare/options.ts";
import { pages } from "./compare/pages.ts";
import { machine, write } from "./compare/report.ts";
import { rowOf } from "./compare/rows.ts";
import { run } from "./compare/run.ts";
import { scale } from "./compare/scale.ts";
import { rowTable } from "./compare/table.ts";
import { waits } from "./compare/waits.ts";

const SANDBOXES = 1_000;

// By an exit of its own, which takes the processes that it started with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(130));

try {
  const options = readOptions(process.argv.slice(2));
  const lines = await bench(options);
  for (const line of lines) console.log(line);
  if (options.write) await write(lines);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

async function bench(options: Options): Promise<string[]> {
  const { rows, looks } = options;
  const together = rows.length > 0 || looks.includes("latency");
  const lines = [`${await machine()}, ${howOf(options)}.`];
  if (together) lines.push("", ...(await inArena(options)));
  if (looks.includes("waits")) lines.push("", ...(await waits(options.waits, say)));
  if (looks.includes("pages")) lines.push("", ...(await pages(options, say)));
  if (looks.includes("scale")) lines.push("", ...(await scale(options, say)));
  return lines;
}

/** What all contenders do in turn. */
async function inArena(options: Options): Promise<string[]> {
  const arena = await openArena(SANDBOXES);
  try {
    const { results, idle } = await run(arena, options, say);
    const times = options.looks.includes("latency")
      ? await latency(arena, options, results, say)
      : [];
    return [
      `At rest, in percent of a core: ${[...idle].map(([name, percent]) => `${name} ${percent.toFixed(1)}`).join(", ")}.`,
      ...[...results].flatMap(([name, turns]) => ["", ...rowTable(rowOf(name), turns)]),
      ...times,
    ];
  } finally {
    await arena.close();
  }
}

function howOf({ seconds, rounds, warmup, connections }: Options): string {
  return `${connections} connections, ${SANDBOXES} sandboxes, medians (least to most) of ${rounds} turns of ${seconds} s behind a warm-up of ${warmup} s`;
}

/** Beside the tables, which alone go to standard output. */
function say(line: string): void {
  console.error(line);
}
