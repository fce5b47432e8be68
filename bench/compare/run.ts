import { setTimeout as sleep } from "node:timers/promises";
import { Generator } from "../generator/generator.ts";
import { checkAlike } from "./alike.ts";
import type { Arena } from "./arena.ts";
import { type Contender, contendersOf, TITLES } from "./contenders.ts";
import { clean } from "./database.ts";
import type { Options } from "./options.ts";
import { type Row, type RowName, rowOf } from "./rows.ts";
import { spent, type Turn, takeTurn } from "./turn.ts";

const IDLE_MS = 5_000;

/** The turns of each contender in each row. */
export type Results = Map<RowName, Map<Contender["name"], Turn[]>>;

export interface Round {
  results: Results;
  /** What each contender that runs costs while nobody asks it, in percent of a core. */
  idle: Map<string, number>;
}

/** All rows, contenders in turn, round by round. */
export async function run(arena: Arena, options: Options, say: (line: string) => void) {
  const { running, stock, databaseUrl, postmaster } = arena;
  const contenders = contendersOf(running, stock).filter(({ name }) =>
    options.contenders.includes(name),
  );
  const generator = new Generator();
  const { connections } = options;
  const turn = (contender: Contender, row: Row, seconds: number) =>
    takeTurn(generator, contender, row, postmaster, { seconds, connections });
  try {
    await checkAlike(running, stock);
    say("answers are the same to the byte");
    const idle = await idleOf(arena, contenders);
    const results: Results = new Map();
    for (const group of ["reads", "creates"] as const) {
      const names = options.rows.filter((name) => rowOf(name).group === group);
      const seconds = options.warmup / names.length;
      for (const contender of seconds > 0 ? contenders : [])
        for (const name of names) await turn(contender, rowOf(name), seconds);
      for (const name of names) {
        say(rowOf(name).title);
        results.set(name, await rounds(name));
      }
    }
    return { results, idle };
  } finally {
    generator.stop();
  }

  async function rounds(name: RowName) {
    const row = rowOf(name);
    const turns = new Map(contenders.map((contender) => [contender.name, [] as Turn[]]));
    for (let round = 0; round < options.rounds; round += 1)
      for (const contender of contenders) {
        if (row.group === "creates") await clean(databaseUrl);
        const taken = await turn(contender, row, options.seconds);
        turns.get(contender.name)?.push(taken);
        say(`  ${TITLES[contender.name].padEnd(30)} ${taken.perSecond.toFixed(0)} a second`);
      }
    if (row.group === "creates") await clean(databaseUrl);
    return turns;
  }
}

async function idleOf({ postmaster }: Arena, contenders: readonly Contender[]) {
  // Those that share processes are idle together.
  const apart = contenders.filter(({ name }) => name !== "connect" && name !== "grpc");
  const look = () => Promise.all(apart.map(({ parts }) => spent(parts, postmaster)));
  const before = await look();
  await sleep(IDLE_MS);
  const behind = await look();
  const total = ({ gateway, service, others }: Awaited<ReturnType<typeof spent>>) =>
    gateway + service + others;
  const percent = (from: number, to: number) => ((to - from) / IDLE_MS) * 100;
  const idle = new Map<string, number>();
  for (const [at, { name }] of apart.entries()) {
    const [from, to] = [before[at], behind[at]];
    if (from && to) idle.set(TITLES[name], percent(total(from), total(to)));
    if (from && to) idle.set("PostgreSQL", percent(from.postgres, to.postgres));
  }
  return idle;
}
