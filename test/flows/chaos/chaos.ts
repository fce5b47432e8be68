import { setTimeout as sleep } from "node:timers/promises";
import { randomFrom } from "../../support/random.ts";
import { runClient } from "./client.ts";
import { callsAs } from "./http.ts";
import { broken } from "./invariants.ts";
import { Journal } from "./journal.ts";
import { deal } from "./killer.ts";
import type { ChaosOptions } from "./options.ts";
import { createPeople, type Person } from "./people.ts";
import { type Outcome, tell } from "./report.ts";
import { type Blow, scheduleOf } from "./schedule.ts";
import { settle } from "./settle.ts";
import { type ChaosSystem, startSystem } from "./system.ts";
import { filesAs } from "./volumes/file-calls.ts";
import { runKeeper } from "./volumes/keeper.ts";

/** Changes that each client makes before the first blow. */
const WORK_EACH = 2;
const BUSY_MS = 60_000;
const PAUSE_MS = { simulated: 250, docker: 1_200 };

type Print = (line: string) => void;

/** One run: clients at work while processes are killed, then the invariants. */
export async function runChaos(options: ChaosOptions, print: Print): Promise<Outcome> {
  print(`chaos: seed ${options.seed}, ${options.kills} kills, engine ${options.engine}`);
  const began = Date.now();
  const say = (line: string) => print(`${secondsSince(began)} ${line}`);
  const system = await startSystem(options);
  try {
    const { journal, dealt } = await workAndKill(system, options, say);
    say("settling");
    const facts = await settle(system, options.settleSecs * 1_000);
    const faults = broken(facts, journal);
    const crashes = crashesOf(system);
    const outcome = { options, dealt, journal, facts, faults, crashes, ms: Date.now() - began };
    for (const line of tell(outcome)) print(line);
    if (options.keep) print(`kept: ${system.dir}`);
    return outcome;
  } finally {
    await system.close();
  }
}

async function workAndKill(system: ChaosSystem, options: ChaosOptions, say: Print) {
  const { kills, seed, engine } = options;
  const journal = new Journal();
  const dealt: Blow[] = [];
  const working = new AbortController();
  const clients = await startClients(system, options, journal, working.signal);
  await busy(journal, clients.length * WORK_EACH);
  const { children, host, isReady } = system;
  const targets = { children, setAvailable: host.setAvailable, isReady };
  await deal(scheduleOf(randomFrom(`${seed}/kills`), kills, engine), targets, (blow) => {
    dealt.push(blow);
    say(`${blow.kind} ${blow.victim} for ${blow.forMs} ms`);
  });
  working.abort();
  await Promise.all(clients);
  return { journal, dealt };
}

async function startClients(
  { urls, databaseUrl, host: { spec } }: ChaosSystem,
  { clients, keepers, seed, engine }: ChaosOptions,
  journal: Journal,
  signal: AbortSignal,
): Promise<Promise<void>[]> {
  const pauseMs = PAUSE_MS[engine];
  const people = await createPeople(databaseUrl, { clients, keepers });
  const optionsOf = ({ name, key }: Person) => {
    const calls = urls.map((url) => callsAs(url, key));
    return { name, calls, seed, journal, spec, pauseMs, signal };
  };
  return [
    ...people.clients.map((person) => runClient(optionsOf(person))),
    ...people.keepers.map((person) => {
      const files = urls.map((url) => filesAs(url, person.key));
      return runKeeper({ ...optionsOf(person), files });
    }),
  ];
}

/** Returns when so many changes were acknowledged: then there is something to lose. */
async function busy({ attempts }: Journal, acknowledged: number): Promise<void> {
  const until = Date.now() + BUSY_MS;
  const acked = () => attempts.filter(({ outcome }) => outcome === "acked").length;
  while (acked() < acknowledged && Date.now() < until) await sleep(50);
}

function crashesOf({ children }: ChaosSystem): [string, number][] {
  return Object.entries(children).map(([name, { crashes }]) => [name, crashes]);
}

function secondsSince(began: number): string {
  return `${((Date.now() - began) / 1_000).toFixed(1)} s`.padStart(8);
}
