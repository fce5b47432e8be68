import { Generator } from "../generator/generator.ts";
import { median } from "../support/measure.ts";
import { startMonolith, stockUp } from "./arena.ts";
import { type Contender, TITLES } from "./contenders.ts";
import { cursorsFrom, PAGE, PAGES } from "./cursors.ts";
import type { Stock } from "./database.ts";
import { type Ground, openGround, pidOf, ready } from "./ground.ts";
import type { Options } from "./options.ts";
import { pageAt, ROWS, type Row, restTarget } from "./rows.ts";
import { type Turn, takeTurn } from "./turn.ts";

const FEW = 1_000;
const PLACES = ["first", "middle", "last"] as const;
const GOAL = 1.2;

/** A page of 20: at the beginning, in the middle and at the end, of an organization with few sandboxes and with many. */
export async function pages(options: Options, say: (line: string) => void): Promise<string[]> {
  const ground = await openGround();
  const generator = new Generator();
  try {
    const one = await ground.alone("one", "main.ts");
    one.child.start();
    await ready(one.isReady);
    const pg = await startMonolith(ground, "pg");
    const lines: string[] = [];
    for (const size of [FEW, options.pageRows]) {
      say(`pages of ${size} sandboxes`);
      const stock = await stockUp(ground, one.port, size);
      const contenders: Contender[] = [["one", one] as const, ["pg", pg] as const].map(
        ([name, { child, port }]) => ({
          name,
          parts: { gateway: [pidOf(child)] },
          target: (row) => restTarget(row, stock, port),
        }),
      );
      const rows = await rowsOf(ground, stock, size);
      for (const contender of contenders) {
        const turns = await measure(contender, rows);
        lines.push(`| ${size} | ${TITLES[contender.name]} | ${cells(turns)} |`);
      }
    }
    return [
      "**A page of 20: microseconds of CPU, PostgreSQL's included (requests a second)**",
      "",
      `| sandboxes | | ${PLACES.join(" | ")} | dearest / cheapest |`,
      "|---|---|---|---|---|---|",
      ...lines,
      "",
      `The goal is that the dearest costs at most ${GOAL} times the cheapest, over pages and over sizes.`,
    ];
  } finally {
    generator.stop();
    await ground.close();
  }

  async function measure(contender: Contender, rows: readonly Row[]): Promise<Turn[][]> {
    const { connections, seconds, rounds, warmup } = options;
    const turn = (row: Row, forSeconds: number) =>
      takeTurn(generator, contender, row, ground.postmaster, { seconds: forSeconds, connections });
    for (const row of rows) await turn(row, warmup / 3 || 0.1);
    const turns: Turn[][] = rows.map(() => []);
    for (let round = 0; round < rounds / 2; round += 1)
      for (const [at, row] of rows.entries()) turns[at]?.push(await turn(row, seconds));
    return turns;
  }
}

/** Pages near the place, no two of which are the same: those that are asked for at once would be one question. */
async function rowsOf(ground: Ground, { orgId }: Stock, size: number): Promise<Row[]> {
  const offsets = [0, size / 2, size - PAGES - PAGE];
  const places = await Promise.all(offsets.map((offset) => cursorsFrom(ground, orgId, offset)));
  return places.map((cursors) => ({ ...ROWS.walk, rest: () => cursors.map(pageAt) }));
}

function cells(turns: readonly (readonly Turn[])[]): string {
  const costs = turns.map((taken) =>
    median(taken.map(({ cpuUs }) => cpuUs.gateway + cpuUs.postgres)),
  );
  const rates = turns.map((taken) => median(taken.map(({ perSecond }) => perSecond)));
  const each = costs.map((cost, at) => `${cost.toFixed(0)} (${rates[at]?.toFixed(0)})`);
  const ratio = Math.max(...costs) / Math.min(...costs);
  return [...each, ratio.toFixed(2)].join(" | ");
}
