import { expect, test } from "vitest";
import { randomFrom } from "../support/random.ts";
import { choose } from "./chaos/choices.ts";
import type { EventRow, Facts } from "./chaos/facts.ts";
import { broken } from "./chaos/invariants.ts";
import { type Attempt, Journal } from "./chaos/journal.ts";
import { scheduleOf } from "./chaos/schedule.ts";

// What the chaos program would say of facts that are wrong: a check that finds nothing proves nothing.

const ID = "019a7c1e-0000-7000-8000-000000000001";
const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));

function event(type: string, seconds: number, client: string | null = "client-1"): EventRow {
  return { id: `e-${seconds}`, type, sandboxId: ID, client, name: "box", at: at(seconds) };
}

function run(generation: number, seconds: number, closed: number | null) {
  return {
    sandboxId: ID,
    generation,
    phase: closed === null ? "running" : "ended",
    outcome: closed === null ? null : "stopped",
    admittedAt: at(seconds),
    runningAt: at(seconds + 1),
    closedAt: closed === null ? null : at(closed),
    billedMs: closed === null ? 0 : 1_000,
    meteredMs: closed === null ? null : 1_000,
  };
}

function machine(generation = 1) {
  return {
    sandboxId: ID,
    generation,
    state: "running" as const,
    startedAt: at(2),
    endedAt: null,
    exitCode: null,
    outOfMemory: false,
    workloadEndedAt: null,
  };
}

function start(generation: number, seconds: number, life = "a") {
  return { life, sandboxId: ID, generation, startedAt: at(seconds).getTime() };
}

/** A sandbox that was created, started and runs. */
function facts(changes: Partial<Facts> = {}): Facts {
  const sandbox = { id: ID, name: "box", orgId: "o", status: "running", generation: 1 };
  return {
    sandboxes: [{ ...sandbox, destroyed: false, failure: null }],
    runs: [run(1, 1, null)],
    events: [
      event("sandbox_created", 0),
      event("sandbox_started", 1),
      event("sandbox_running", 2, null),
    ],
    records: [{ idempotencyKey: "k", sandboxId: ID }],
    places: [{ orgId: "o", kept: "1/0/1", counted: "1/0/1" }],
    machines: [machine()],
    starts: [start(1, 2)],
    unevenDays: [],
    host: [],
    ...changes,
  };
}

function attempt(changes: Partial<Attempt> = {}): Attempt {
  return {
    client: "client-1",
    operation: 1,
    action: "create",
    outcome: "acked",
    sandboxId: ID,
    starts: true,
    name: undefined,
    answer: "200",
    at: 0,
    ...changes,
  };
}

function journal(...attempts: Attempt[]): Journal {
  const kept = new Journal();
  for (const each of attempts) kept.add(each);
  return kept;
}

const good = facts();

test("facts that agree break nothing, and so do those that are in doubt", () => {
  expect(broken(good, journal(attempt()))).toEqual([]);
  const doubt = attempt({ outcome: "doubt", sandboxId: undefined });
  expect(broken(good, journal(doubt))).toEqual([]);
  expect(broken(good, journal(attempt(), doubt))).toEqual([]);
});

const stopAcked = attempt({ action: "stop", starts: false, operation: 2 });
const renameAcked = attempt({ action: "rename", starts: false, name: "other" });

test.each<[string, Facts, Attempt[], RegExp]>([
  ["an effect that nobody asked for", good, [], /exactly once: .* 1 events, but 0 ack/],
  ["an effect that was refused", good, [attempt({ outcome: "refused" })], /exactly once/],
  [
    "an acknowledged change that is lost",
    good,
    [attempt(), stopAcked],
    /exactly once: .*stop_requested/,
  ],
  ["a rename that is lost", good, [attempt(), renameAcked], /rename to other: 0 events/],
  [
    "one request that took effect twice",
    facts({ events: [...good.events, event("sandbox_created", 3)] }),
    [attempt()],
    /exactly once: .*created: 2 events/,
  ],
  [
    "an effect on another sandbox than the acknowledged one",
    good,
    [attempt({ sandboxId: "019a7c1e-0000-7000-8000-000000000002" })],
    /exactly once/,
  ],
  [
    "a running sandbox without a machine",
    facts({ machines: [] }),
    [attempt()],
    /without a machine/,
  ],
  ["a machine of another generation", facts({ machines: [machine(2)] }), [attempt()], /machines/],
  ["two machines", facts({ machines: [machine(), machine()] }), [attempt()], /two machines/],
  [
    "a machine that was started again",
    facts({ machines: [{ ...machine(), startedAt: at(5) }] }),
    [attempt()],
    /was started after it was up/,
  ],
  [
    "a machine of nobody",
    facts({ sandboxes: [], runs: [run(1, 1, 3)] }),
    [attempt()],
    /is gone and has a machine/,
  ],
  [
    "a sandbox between two states",
    facts({ sandboxes: good.sandboxes.map((each) => ({ ...each, status: "starting" })) }),
    [attempt()],
    /still starting/,
  ],
  [
    "a sandbox whose destroy is not over",
    facts({ sandboxes: good.sandboxes.map((each) => ({ ...each, destroyed: true })) }),
    [attempt()],
    /being destroyed/,
  ],
  [
    "two open runs",
    facts({ runs: [run(1, 1, null), run(2, 1, null)] }),
    [attempt()],
    /open runs 1,2/,
  ],
  ["runs that overlap", facts({ runs: [run(1, 1, 9), run(2, 5, null)] }), [attempt()], /overlap/],
  ["a missing event", facts({ events: good.events.slice(0, 2) }), [attempt()], /history/],
  [
    "events out of order",
    facts({ events: [event("sandbox_running", 0, null), ...good.events.slice(0, 2)] }),
    [attempt()],
    /are no life/,
  ],
  [
    "a second start of one generation",
    facts({ starts: [start(1, 2), start(1, 1)] }),
    [attempt()],
    /started twice/,
  ],
  [
    "a start after a newer one",
    facts({ starts: [start(2, 1), start(1, 2)] }),
    [attempt()],
    /started after 2/,
  ],
  [
    "a place that was leaked",
    facts({ places: [{ orgId: "o", kept: "1/0/2", counted: "1/0/1" }] }),
    [attempt()],
    /places: o: places 1\/0\/2, but rows 1\/0\/1/,
  ],
  [
    "a run that is not rolled up",
    facts({ runs: [{ ...run(1, 1, 3), meteredMs: null }] }),
    [attempt()],
    /metering: .*run 1 is not rolled up/,
  ],
  [
    "a run that is rolled up twice",
    facts({ runs: [{ ...run(1, 1, 3), meteredMs: 2_000 }] }),
    [attempt()],
    /metering: .*run 1 2000 ms/,
  ],
  [
    "an open run that is rolled up",
    facts({ runs: [{ ...run(1, 1, null), meteredMs: 5 }] }),
    [attempt()],
    /metering: .*run 1 5 ms/,
  ],
  [
    "a day that does not add up",
    facts({ unevenDays: ["o 2026-01-01"] }),
    [attempt()],
    /metering: o 2026-01-01/,
  ],
  ["what only the host shows", facts({ host: ["up unseen"] }), [attempt()], /host: up unseen/],
  ["a start without a run", facts({ starts: [start(3, 2)] }), [attempt()], /without a run/],
  [
    "a start of what was up, in a new life of the engine",
    facts({ starts: [start(1, 2), start(1, 9, "b")] }),
    [attempt()],
    /started again after it had been running/,
  ],
])("%s is found", (_, wrong, attempts, sentence) => {
  expect(broken(wrong, journal(...attempts)).join("\n")).toMatch(sentence);
});

const OTHER = "019a7c1e-0000-7000-8000-000000000002";
const first = attempt({ idempotencyKey: "k", body: "{}", replayed: false });
const repeat: Attempt = { ...first, repeats: true, replayed: true };
const refused: Attempt = { ...first, outcome: "refused", answer: "409 taken" };
const lost = attempt({ idempotencyKey: "k", outcome: "doubt", sandboxId: undefined, answer: "0" });
const waited: Attempt = { ...first, waits: true };

test("tries with one key that were told the same break nothing, and neither do those that were told nothing", () => {
  expect(broken(good, journal(lost, first, repeat))).toEqual([]);
  expect(broken(good, journal(lost, lost))).toEqual([]);
  const gone = {
    ...waited,
    outcome: "doubt" as const,
    replayed: true,
    answer: "404",
    body: "gone",
  };
  const later = { ...waited, replayed: true, body: "later" };
  expect(broken(good, journal(waited, later, gone))).toEqual([]);
  // Refused once is refused for good, whatever was in doubt before.
  const empty = { sandboxes: [], runs: [], events: [], places: [], machines: [], starts: [] };
  const records = [{ idempotencyKey: "k", sandboxId: null }];
  const nothing = facts({ ...empty, records });
  expect(broken(nothing, journal(lost, refused, { ...refused, ...repeated }))).toEqual([]);
});

const repeated = { repeats: true, replayed: true };
const twice = facts({ events: [...good.events, event("sandbox_created", 3)] });

test.each<[string, Facts, Attempt[], RegExp]>([
  [
    "an effect of a try that was lost, beside the one that was acknowledged",
    twice,
    [lost, first],
    /exactly once: .*created/,
  ],
  ["two effects of tries that were all lost", twice, [lost, lost], /exactly once: .*created/],
  ["an effect of a key that was refused", good, [lost, refused], /exactly once: .*created/],
  [
    "a repeat that is told of another sandbox",
    good,
    [first, { ...repeat, sandboxId: OTHER, body: "other" }],
    /idempotency: .*different answers/,
  ],
  [
    "a wait that is told of another sandbox",
    good,
    [waited, { ...waited, ...repeated, sandboxId: OTHER }],
    /idempotency: .*different answers/,
  ],
  [
    "a repeat that is told something else",
    good,
    [first, { ...repeat, body: '{"a":1}' }],
    /idempotency: .*different answers/,
  ],
  [
    "a repeat that is refused",
    good,
    [first, { ...refused, ...repeated }],
    /idempotency: .*different answers/,
  ],
  [
    "a repeat that is not said to be one",
    good,
    [first, { ...repeat, replayed: false }],
    /not said to be one/,
  ],
  ["two first answers", good, [first, first], /two answers are said to be the first/],
  [
    "an answer that nothing is on record of",
    facts({ records: [] }),
    [first],
    /nothing is on record/,
  ],
  [
    "an answer with another sandbox than the record's",
    facts({ records: [{ idempotencyKey: "k", sandboxId: OTHER }] }),
    [first],
    /is on record/,
  ],
  ["a refusal that is on record as done", good, [refused], /refused, but on record as done/],
])("with an idempotency key: %s is found", (_, wrong, attempts, sentence) => {
  expect(broken(wrong, journal(...attempts)).join("\n")).toMatch(sentence);
});

test("an answer that no client should get is found", () => {
  const kept = journal(attempt());
  kept.strange.push("client-1 #1 create: 500 internal");
  expect(broken(good, kept)).toEqual(["strange answer: client-1 #1 create: 500 internal"]);
});

test("a seed repeats the blows and the choices; another one does not", () => {
  const blows = (seed: string) => scheduleOf(randomFrom(seed), 50, "simulated");
  expect(blows("a")).toEqual(blows("a"));
  expect(blows("a")).not.toEqual(blows("b"));
  expect(blows("a").filter(({ kind }) => kind === "kill")).toHaveLength(50);
  const choices = (seed: string) => {
    const random = randomFrom(seed);
    return Array.from({ length: 100 }, () => choose(random, 6));
  };
  expect(choices("a")).toEqual(choices("a"));
  expect(choices("a")).not.toEqual(choices("b"));
});
