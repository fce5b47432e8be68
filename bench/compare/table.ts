import { median } from "../support/measure.ts";
import { BASELINE, type ContenderName, TITLES } from "./contenders.ts";
import type { Row } from "./rows.ts";
import type { Spender, Turn } from "./turn.ts";

const SPENDERS: Spender[] = ["gateway", "service", "others", "postgres", "generator"];

/** The table of one row in Markdown: medians, with the least and the most, and shares of the plain monolith's. */
export function rowTable(row: Row, turns: ReadonlyMap<ContenderName, readonly Turn[]>): string[] {
  const base = turns.get(BASELINE);
  return [
    `**${row.title}**`,
    "",
    "| | requests a second | share | goal | CPU us a request: gateway | service | others | PostgreSQL | generator | without generator | share |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
    ...[...turns].map(([name, taken]) => line(row, name, taken, base)),
  ];
}

function line(
  row: Row,
  name: ContenderName,
  turns: readonly Turn[],
  base: readonly Turn[] | undefined,
): string {
  const rates = turns.map(({ perSecond }) => perSecond);
  const [rate, least, most] = [median(rates), Math.min(...rates), Math.max(...rates)];
  const share = base ? rate / median(base.map(({ perSecond }) => perSecond)) : Number.NaN;
  const cost = base ? median(turns.map(total)) / median(base.map(total)) : Number.NaN;
  const cells = [
    TITLES[name],
    `${whole(rate)} (${whole(least)} to ${whole(most)})`,
    share.toFixed(2),
    goal(row, name, share),
    ...SPENDERS.map((part) => whole(median(turns.map(({ cpuUs }) => cpuUs[part])))),
    whole(median(turns.map(total))),
    cost.toFixed(2),
  ];
  return `| ${cells.join(" | ")} |`;
}

function goal({ goals }: Row, name: ContenderName, share: number): string {
  if (name !== "one" && name !== "separate") return "";
  return `${goals[name]}${share >= goals[name] ? ", met" : ", **missed**"}`;
}

/** Of what the work itself needs. */
function total({ cpuUs: { gateway, service, others, postgres } }: Turn): number {
  return gateway + service + others + postgres;
}

function whole(value: number): string {
  return value.toFixed(0);
}
