import { parseArgs } from "node:util";
import { CONTENDERS, type ContenderName } from "./contenders.ts";
import { ROWS, type RowName } from "./rows.ts";

/** What is measured beside requests a second. */
const LOOKS = ["latency", "waits", "pages", "scale"] as const;
export type LookName = (typeof LOOKS)[number];

export interface Options {
  rows: RowName[];
  looks: LookName[];
  contenders: ContenderName[];
  /** Of one turn. */
  seconds: number;
  rounds: number;
  /** Of each contender in reads and in creates, in seconds. */
  warmup: number;
  connections: number;
  /** Waits held at once, and sandboxes that run. */
  waits: number;
  running: number;
  /** Sandboxes in the database where there are many: of pages, and of what grows. */
  pageRows: number;
  scaleRows: number;
  /** Put the tables into docs/measured.md. */
  write: boolean;
}

const USAGE = `npm run bench -- [--rows ${[...Object.keys(ROWS), ...LOOKS].join(",")}] [--contenders ${CONTENDERS.join(",")}]
  [--seconds N] [--rounds N] [--warmup N] [--connections N] [--waits N] [--running N]
  [--page-rows N] [--scale-rows N] [--write]`;

/** @throws Error with the usage where the arguments do not fit */
export function readOptions(args: readonly string[]): Options {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        rows: { type: "string" },
        contenders: { type: "string" },
        seconds: { type: "string", default: "2" },
        rounds: { type: "string", default: "5" },
        warmup: { type: "string", default: "15" },
        connections: { type: "string", default: "32" },
        waits: { type: "string", default: "10000" },
        running: { type: "string", default: "2000" },
        "page-rows": { type: "string", default: "1000000" },
        "scale-rows": { type: "string", default: "100000" },
        write: { type: "boolean", default: false },
      },
    });
    const rowNames = Object.keys(ROWS) as RowName[];
    const rows = some("rows", values.rows, [...rowNames, ...LOOKS]);
    return {
      rows: rowNames.filter((name) => rows.includes(name)),
      looks: LOOKS.filter((name) => rows.includes(name)),
      contenders: some("contenders", values.contenders, [...CONTENDERS]),
      seconds: number("seconds", values.seconds, 0.1, 600),
      rounds: number("rounds", values.rounds, 1, 100),
      warmup: number("warmup", values.warmup, 0, 600),
      connections: number("connections", values.connections, 1, 1_000),
      waits: number("waits", values.waits, 1, 15_000),
      running: number("running", values.running, 1, 10_000),
      pageRows: number("page-rows", values["page-rows"], 100, 10_000_000),
      scaleRows: number("scale-rows", values["scale-rows"], 100, 10_000_000),
      write: values.write,
    };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
  }
}

function some<T extends string>(name: string, text: string | undefined, all: T[]): T[] {
  if (text === undefined) return all;
  const asked = text.split(",");
  const unknown = asked.find((one) => !all.some((known) => known === one));
  if (unknown !== undefined) throw new Error(`--${name}: there is no ${unknown}`);
  return all.filter((known) => asked.includes(known));
}

function number(name: string, text: string, least: number, most: number): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`--${name} must be a number from ${least} to ${most}`);
}
