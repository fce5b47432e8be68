import { expect, test } from "vitest";
import { randomFrom } from "../support/random.ts";
import { choose } from "./chaos/choices.ts";
import type { EventRow, Facts } from "./chaos/facts.ts";
import { broken } from "./chaos/invariants.ts";
import { type Attempt, Journal } from "./chaos/journal.ts";
import { scheduleOf } from "./chaos/schedule.ts";
import { fileOf, type KnownVolume, NOTHING } from "./chaos/volumes/book.ts";
import { chooseForVolume } from "./chaos/volumes/choices.ts";
import { contentOf, digestOf } from "./chaos/volumes/content.ts";
import { NO_VOLUMES, type VolumeFacts } from "./chaos/volumes/facts.ts";
import { judgeVolume } from "./chaos/volumes/judge.ts";

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
    volumes: NO_VOLUMES,
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

const VOLUME = "019a7c1e-0000-7000-8000-00000000000a";
const HOST = "019a7c1e-0000-7000-8000-00000000000b";
const [A, B] = ["3 a", "3 b"];
const NOON = 20_000 * 86_400_000 + 43_200_000;

/** A volume of 3 bytes with one file, measured twice within 10 ms, and the organization's host volume. */
function volumeFacts(changes: Partial<VolumeFacts> = {}): VolumeFacts {
  const sample = (volumeId: string, at: number, bytes: string) => ({
    volumeId,
    at: NOON + at,
    bytes,
    ended: false,
  });
  return {
    rows: [
      { id: VOLUME, orgId: "o", name: "v", usedBytes: 3, deleted: false },
      { id: HOST, orgId: "o", name: null, usedBytes: 0, deleted: false },
    ],
    events: [{ type: "volume_created", volumeId: VOLUME, client: "keeper" }],
    homeless: [],
    accruals: [
      {
        volumeId: VOLUME,
        day: 20_000,
        startMs: 43_200_000,
        endMs: 43_200_010,
        byteMs: "20",
      },
    ],
    samples: [sample(VOLUME, 0, "1"), sample(VOLUME, 10, "3"), sample(HOST, 3, "0")],
    disk: { volumes: [{ orgId: "o", id: VOLUME, files: { "/f": A }, bytes: 3 }], strays: [] },
    ...changes,
  };
}

function keeping(changes: Partial<KnownVolume> = {}): Journal {
  const kept = journal(attempt());
  const volume = kept.book.add("keeper", "v");
  Object.assign(volume, { id: VOLUME, made: "yes" });
  fileOf(volume, "/f").may = new Set([A]);
  Object.assign(volume, changes);
  return kept;
}

const file = (...may: string[]) => ({
  files: new Map([["/f", { may: new Set(may), sure: true }]]),
});
const [volumeRow, hostRow] = volumeFacts().rows as [
  VolumeFacts["rows"][number],
  VolumeFacts["rows"][number],
];
const noFiles = { volumes: [], strays: [] };
const accrual = volumeFacts().accruals[0] as VolumeFacts["accruals"][number];
const ended = { volumeId: VOLUME, at: NOON + 10, bytes: "3", ended: true };
const gone: Partial<VolumeFacts> = {
  rows: [hostRow],
  samples: [...volumeFacts().samples, ended],
  disk: noFiles,
};
const deletion = { type: "volume_deleted", volumeId: VOLUME, client: "keeper" };
const deletedEvents = [...volumeFacts().events, deletion];

test.each<[string, Partial<VolumeFacts>, Partial<KnownVolume>]>([
  ["is there", {}, {}],
  ["may have another content", {}, file(A, B)],
  ["was deleted", { ...gone, events: deletedEvents }, { deleted: "yes" }],
  ["may be deleted, and is not", {}, { deleted: "doubt" }],
  ["may be deleted, and is", { ...gone, events: deletedEvents }, { deleted: "doubt" }],
  [
    "was never told to be made, and is there",
    {
      disk: noFiles,
      rows: [{ ...volumeRow, usedBytes: 0 }, hostRow],
      accruals: [],
      samples: [
        { volumeId: VOLUME, at: NOON, bytes: "0", ended: false },
        { volumeId: HOST, at: NOON, bytes: "0", ended: false },
      ],
    },
    { id: undefined, made: "doubt" },
  ],
])("a volume that %s breaks nothing", (_, changes, known) => {
  expect(broken(facts({ volumes: volumeFacts(changes) }), keeping(known))).toEqual([]);
});

test.each<[string, Partial<VolumeFacts>, Partial<KnownVolume>, RegExp]>([
  [
    "a file that was put and is lost",
    { disk: { volumes: [{ orgId: "o", id: VOLUME, files: {}, bytes: 3 }], strays: [] } },
    {},
    /files: .*\/f is nothing, not 3 a/,
  ],
  ["a file with another content than it was put with", {}, file(B), /files: .*\/f is 3 a, not 3 b/],
  ["a half of a file", {}, file(B, NOTHING), /files: .*\/f is 3 a, not 3 b or nothing/],
  ["a file that was removed, and is there", {}, file(NOTHING), /files: .*\/f is 3 a, not nothing/],
  ["a file that nobody put", {}, { files: new Map() }, /files: .*\/f is 3 a/],
  [
    "files in a volume of nobody",
    {
      rows: [volumeRow, { ...hostRow, usedBytes: 1 }],
      disk: {
        volumes: [
          ...volumeFacts().disk.volumes,
          { orgId: "o", id: HOST, files: { "/x": A }, bytes: 1 },
        ],
        strays: [],
      },
    },
    {},
    /files: .*nobody put there/,
  ],
  ["a volume that is lost", gone, {}, /volumes: .*was made, and is gone/],
  ["a deleted volume whose row is there", {}, { deleted: "yes" }, /was deleted, and is there/],
  [
    "a deletion that does not end",
    { rows: [{ ...volumeRow, deleted: true }, hostRow] },
    {},
    /still being deleted/,
  ],
  [
    "a deleted volume whose bytes are there",
    { ...gone, events: deletedEvents, disk: volumeFacts().disk },
    { deleted: "yes" },
    /gone, and its files are not/,
  ],
  [
    "a volume that nobody made",
    { rows: [volumeRow, { ...volumeRow, id: ID, name: "w", usedBytes: 0 }, hostRow] },
    {},
    /nobody made w/,
  ],
  [
    "two host volumes",
    { rows: [volumeRow, hostRow, { ...hostRow, id: ID }] },
    {},
    /two host volumes/,
  ],
  ["a create without its event", { events: [] }, {}, /0 events volume_created/],
  [
    "a create with two events",
    { events: [...volumeFacts().events, ...volumeFacts().events] },
    {},
    /2 events volume_created/,
  ],
  [
    "an event of a delete that was refused",
    { events: deletedEvents },
    {},
    /1 events volume_deleted/,
  ],
  [
    "a run without its volume",
    { homeless: ["x (1) runs without volume y"] },
    {},
    /volumes: x \(1\) runs without/,
  ],
  [
    "what is left of a write",
    { disk: { ...volumeFacts().disk, strays: ["o/staging/1"] } },
    {},
    /o\/staging\/1 is in no volume/,
  ],
  [
    "a measurement that is not what is there",
    { disk: { volumes: [{ orgId: "o", id: VOLUME, files: { "/f": A }, bytes: 4 }], strays: [] } },
    {},
    /holds 4 bytes, and 3 were measured/,
  ],
  [
    "a volume that was never measured",
    { rows: [{ ...volumeRow, usedBytes: null }, hostRow], samples: [], accruals: [] },
    {},
    /holds 3 bytes, and null were/,
  ],
  [
    "a stretch that is accrued twice",
    { accruals: [{ ...accrual, byteMs: "40" }] },
    {},
    /storage: .*come to day 20000/,
  ],
  ["a stretch that is not accrued", { accruals: [] }, {}, /storage: .*come to/],
  [
    "a stretch that is accrued for too long",
    { accruals: [{ ...accrual, endMs: 43_200_011 }] },
    {},
    /storage: .*come to/,
  ],
  ["accruals of a volume that nobody measured", { samples: [] }, {}, /storage: .*come to/],
  [
    "measurements out of order",
    { samples: [...volumeFacts().samples].reverse() },
    {},
    /and then at/,
  ],
  [
    "a measurement after the end",
    { samples: [...volumeFacts().samples, ended, { ...ended, ended: false }] },
    {},
    /measured after its end/,
  ],
  [
    "a measurement that is not accrued",
    {
      rows: [{ ...volumeRow, usedBytes: 4 }, hostRow],
      disk: { volumes: [{ orgId: "o", id: VOLUME, files: { "/f": A }, bytes: 4 }], strays: [] },
    },
    {},
    /measured to hold 4, but accrues 3/,
  ],
  [
    "a volume that is gone and accrues",
    { ...gone, samples: volumeFacts().samples, events: deletedEvents },
    { deleted: "yes" },
    /goes on to accrue/,
  ],
])("of volumes: %s is found", (_, wrong, known, sentence) => {
  const found = broken(facts({ volumes: volumeFacts(wrong) }), keeping(known));
  expect(found.join("\n")).toMatch(sentence);
});

test("an answer about a volume is acknowledged, refused, in doubt, or strange", () => {
  const judged = (status: number, code?: string) =>
    judgeVolume({ status, code, body: {}, replayed: false });
  expect(judged(200)).toBe("acked");
  expect(judged(409, "volume_in_use")).toBe("refused");
  expect(judged(409, "idempotency_in_progress")).toBe("doubt");
  expect([0, 502, 503, 504].map((status) => judged(status))).toEqual(Array(4).fill("doubt"));
  expect(judged(429)).toBe("again");
  expect([400, 403, 404, 409, 413, 500].map((status) => judged(status, "x"))).toEqual(
    Array(6).fill("strange"),
  );
});

test("contents are told apart by what they are, and by their length", () => {
  const contents = [contentOf("a", 3), contentOf("b", 3), contentOf("a", 2), contentOf("a", 0)];
  expect(new Set(contents.map(digestOf)).size).toBe(4);
  expect(contents.map(({ length }) => length)).toEqual([3, 3, 2, 0]);
  expect(contentOf("a", 3)).toEqual(contentOf("a", 3));
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
    return Array.from({ length: 100 }, () => [choose(random, 6), chooseForVolume(random, 3)]);
  };
  expect(choices("a")).toEqual(choices("a"));
  expect(choices("a")).not.toEqual(choices("b"));
});
