import { toUs } from "../../prisma/pages.ts";
import { type PagePoint, page } from "../../runtime/pages.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createSecrets } from "../../runtime/secrets.ts";
import { Generator } from "../generator/generator.ts";
import { median } from "../support/measure.ts";
import { startMonolith, stockUp } from "./arena.ts";
import { type Contender, TITLES } from "./contenders.ts";
import type { Stock } from "./database.ts";
import { type Ground, openGround, pidOf, ready } from "./ground.ts";
import type { Options } from "./options.ts";
import { ROWS, type Row, restTarget } from "./rows.ts";
import { type Turn, takeTurn } from "./turn.ts";

const FEW = 1_000;
const PLACES = ["first", "middle", "last"] as const;
const PAGE = 20;
const GOAL = 1.2;

/** A page of 20: the first, one in the middle and the last, of an organization with few sandboxes and with many. */
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

/** Cursors are made as the program makes them: walking to the last page would take 50,000 requests. */
async function rowsOf(ground: Ground, { orgId }: Stock, size: number): Promise<Row[]> {
  const secrets = createSecrets(Buffer.from(ground.secretsKey, "hex"));
  const listed = { list: "sandboxes", orgId, filters: [[], []] };
  const paths = ["/v1/sandboxes?limit=20"];
  for (const offset of [size / 2, size - PAGE - 1]) {
    const next = await pointAt(ground.databaseUrl, offset);
    const sign = (data: string) => secrets.hmac("cursor", data);
    const asked = { limit: PAGE, cursor: "" };
    const { nextCursor } = await page(sign, listed, asked, async () => ({ rows: [], next }));
    paths.push(`${paths[0]}&cursor=${nextCursor}`);
  }
  return paths.map((path) => ({ ...ROWS.list, rest: () => [{ method: "GET", path }] }));
}

function pointAt(databaseUrl: string, offset: number): Promise<PagePoint> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<PagePoint>(
      `SELECT id, ${toUs("created_at")} AS us FROM sandbox.sandboxes WHERE destroyed_at IS NULL
       ORDER BY created_at DESC, id DESC OFFSET $1 LIMIT 1`,
      [offset],
    );
    if (!rows[0]) throw new Error("there is no such page");
    return rows[0];
  });
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
