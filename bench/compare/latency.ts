import { Generator } from "../generator/generator.ts";
import { median } from "../support/measure.ts";
import type { Arena } from "./arena.ts";
import {
  BASELINE,
  type Contender,
  type ContenderName,
  contendersOf,
  TITLES,
} from "./contenders.ts";
import type { Options } from "./options.ts";
import { type RowName, rowOf } from "./rows.ts";
import type { Results } from "./run.ts";
import { type Load, type Turn, takeTurn } from "./turn.ts";

/** The kinds of work whose times are looked at. */
const WORK: RowName[] = ["get", "walk"];
const ASKED: ContenderName[] = ["one", "separate", "pg", "prisma"];
const GOAL = 1.2;
/** As many times as long as other turns: of two seconds, one stall of twenty milliseconds is the whole hundredth. */
const LONGER = 3;

/**
 * Times of answers at a steady rate: half of what the plain monolith can do at most, and half of what each can do itself.
 * @param results what each can do, where that was measured
 */
export async function latency(
  arena: Arena,
  options: Options,
  results: Results,
  say: (line: string) => void,
) {
  const { running, stock, postmaster } = arena;
  const asked = contendersOf(running, stock).filter(
    ({ name }) => ASKED.includes(name) && (name === BASELINE || options.contenders.includes(name)),
  );
  const generator = new Generator();
  const lines: string[] = [];
  try {
    for (const name of WORK) {
      say(`times of ${rowOf(name).title}`);
      lines.push("", ...(await tableOf(name)));
    }
    return lines;
  } finally {
    generator.stop();
  }

  async function tableOf(name: RowName): Promise<string[]> {
    const row = rowOf(name);
    const { connections, rounds } = options;
    const seconds = options.seconds * LONGER;
    const turn = (contender: Contender, load: Omit<Load, "connections">) =>
      takeTurn(generator, contender, row, postmaster, { connections, ...load });
    const peaks = new Map<ContenderName, number>();
    for (const contender of asked) {
      const known = results.get(name)?.get(contender.name);
      if (!known) await turn(contender, { seconds: options.warmup || 0.1 });
      const turns = known ?? [await turn(contender, { seconds })];
      peaks.set(contender.name, median(turns.map(({ perSecond }) => perSecond)));
    }
    const common = (peaks.get(BASELINE) ?? Number.NaN) / 2;
    const taken = asked.map((contender) => {
      const own = (peaks.get(contender.name) ?? Number.NaN) / 2;
      return { contender, own, atCommon: [] as Turn[], atOwn: [] as Turn[] };
    });
    for (let round = 0; round < rounds / 2; round += 1)
      for (const { contender, own, atCommon, atOwn } of taken) {
        atOwn.push(await turn(contender, { seconds, rate: own }));
        // What cannot keep pace would only show how long it was asked.
        if (common < own * 1.8) atCommon.push(await turn(contender, { seconds, rate: common }));
      }
    const base = taken.find(({ contender }) => contender.name === BASELINE);
    const basis = base ? p99(base.atCommon) : Number.NaN;
    return [
      `**${row.title}: milliseconds at a steady rate, counted from when a request was due**`,
      "",
      `| | at half the monolith's peak (${common.toFixed(0)} a second): p50 | p99 | share of p99 | goal | half its own peak, a second | p50 | p99 | generator late, p99 |`,
      "|---|---|---|---|---|---|---|---|---|",
      ...taken.map(({ contender, own, atCommon, atOwn }) => {
        const share = p99(atCommon) / basis;
        const met =
          atCommon.length === 0 ? "**cannot keep pace**" : share <= GOAL ? "met" : "**missed**";
        const goal = contender.name === "one" ? `${GOAL}, ${met}` : "";
        const late = median([...atCommon, ...atOwn].map(({ outcome }) => outcome.lateP99));
        const cells = [p50(atCommon), p99(atCommon), share].map((value) => shown(value, 2));
        const owned = [shown(own, 0), shown(p50(atOwn), 2), shown(p99(atOwn), 2)];
        return `| ${[TITLES[contender.name], ...cells, goal, ...owned, shown(late, 2)].join(" | ")} |`;
      }),
    ];
  }
}

function p50(turns: readonly Turn[]): number {
  return median(turns.map(({ outcome }) => outcome.latency.p50));
}

function p99(turns: readonly Turn[]): number {
  return median(turns.map(({ outcome }) => outcome.latency.p99));
}

function shown(value: number, digits: number): string {
  return Number.isFinite(value) ? value.toFixed(digits) : "-";
}
