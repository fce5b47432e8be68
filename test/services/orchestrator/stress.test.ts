import { afterEach, expect, test, vi } from "vitest";
import { ServiceError } from "../../../runtime/errors.ts";
import type { SimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { PLACES_SQL, type PlacesRow, wrongPlaces } from "../../support/places.ts";
import { type Random, randomFrom } from "../../support/random.ts";
import { createInput } from "../sandbox/support.ts";
import { createSystem, type System } from "./support.ts";

const SEED = Number(process.env.STRESS_SEED ?? 20261121);
const CLIENTS = 16;
const CALLS_EACH = 100;
const NAMES = ["one", "two", "three", "four"];
/** What a client may be told when others are at the same names. */
const REFUSALS = [
  "SANDBOX_NOT_FOUND",
  "NAME_ALREADY_EXISTS",
  "INVALID_STATE_TRANSITION",
  // Between the end of a frozen leader's lease and its heir.
  "ORCHESTRATOR_UNREACHABLE",
];

let system: System | undefined;
afterEach(() => system?.close());

const pause = (ms: number) => new Promise((go) => setTimeout(go, ms));

/** Calls what clients call, on few names, and says which errors were no refusals. */
async function client({ ctx, caller }: System, { next: random, pick }: Random): Promise<unknown[]> {
  const strange: unknown[] = [];
  const name = () => pick(NAMES);
  const calls = [
    () => createSandbox(ctx, caller, createInput({}, { name: name(), start: random() < 0.8 })),
    () => change.startSandbox(ctx, caller, { name: name() }),
    () => change.startSandbox(ctx, caller, { name: name() }),
    () => change.stopSandbox(ctx, caller, { name: name() }),
    () => change.destroySandbox(ctx, caller, { name: name() }),
    () => change.renameSandbox(ctx, caller, { name: name() }, { name: name(), slug: null }),
  ];
  for (let call = 0; call < CALLS_EACH; call += 1) {
    if (random() < 0.7) await pause(random() * 80);
    try {
      await pick(calls)();
    } catch (error) {
      if (!(error instanceof ServiceError && REFUSALS.includes(error.reason))) strange.push(error);
    }
  }
  return strange;
}

/** Makes the engine slow, full of faults, and away at times, until it is told to end. */
async function trouble({ engine, database }: System, { next: random }: Random, end: AbortSignal) {
  engine.settings.faultOf = () => {
    const chance = random();
    if (chance < 0.1) return { kind: "failure", message: "no such image" };
    return chance < 0.3 ? { kind: "ends", afterMs: random() * 300, exitCode: 1 } : undefined;
  };
  while (!end.aborted) {
    engine.settings.delays = { start: random() * 150, stop: random() * 150 };
    engine.setAvailable(random() > 0.15);
    if (random() < 0.2)
      await database.query(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()",
      );
    await pause(100);
  }
  engine.settings.delays = { start: 0, stop: 0 };
  engine.settings.faultOf = () => undefined;
  engine.setAvailable(true);
}

/** Another orchestrator takes over from the first, which stands still beyond its lease, on the same engine. */
async function handOver(of: System): Promise<void> {
  of.engine.close = async () => {};
  await of.orchestrate(of.engine);
  await pause(1_500);
  const thaw = of.freezeFirst();
  await expect.poll(() => epochOf(of), PATIENT).toBe(2);
  await pause(500);
  thaw();
  await of.stopFirst();
}

async function epochOf({ database }: System): Promise<number | undefined> {
  const [lease] = await database.query<{ epoch: number }>(
    "SELECT epoch::int FROM orchestrator.leases",
  );
  return lease?.epoch;
}

/** Of four names' sandboxes so many have room at a time; the rest waits its turn. */
const ROOM = 2;

/** Most machines that were ever up at once, as they come up. */
function countMachines(engine: SimulatedEngine): () => number {
  let most = 0;
  const { ensureRunning } = engine;
  engine.ensureRunning = async (allocation, signal) => {
    const instance = await ensureRunning.call(engine, allocation, signal);
    const up = (await engine.list().catch(() => [])).filter(({ state }) => state === "running");
    most = Math.max(most, up.length);
    return instance;
  };
  return () => most;
}

/** Counts calls on a sandbox that begin while another one on it is under way. */
function countOverlaps(engine: SimulatedEngine): () => number {
  const underWay = new Set<string>();
  let overlaps = 0;
  const exclusive = async <T>(id: string, call: () => Promise<T>): Promise<T> => {
    if (underWay.has(id)) overlaps += 1;
    underWay.add(id);
    return call().finally(() => underWay.delete(id));
  };
  const { ensureRunning, stop, remove } = engine;
  engine.ensureRunning = (allocation, signal) =>
    exclusive(allocation.sandboxId, () => ensureRunning.call(engine, allocation, signal));
  engine.stop = (run, graceMs) => exclusive(run.sandboxId, () => stop.call(engine, run, graceMs));
  engine.remove = (id) => exclusive(id, () => remove.call(engine, id));
  return () => overlaps;
}

interface Living {
  id: string;
  status: string;
  generation: number;
}

const living = ({ database }: System) =>
  database.query<Living>("SELECT id, status, generation FROM sandbox.sandboxes ORDER BY id");

async function settled(to: System): Promise<void> {
  const moving =
    "SELECT id FROM sandbox.sandboxes WHERE destroyed_at IS NOT NULL OR status IN ('starting', 'stopping')";
  await expect.poll(() => to.database.query(moving), PATIENT).toEqual([]);
  // And what the engine has is what the rows say, once it was compared.
  const key = (id: string, generation: number) => `${id} ${generation}`;
  await expect
    .poll(async () => {
      const machines = (await to.engine.list()).filter(({ state }) => state === "running");
      const up = machines.map(({ sandboxId, generation }) => key(sandboxId, generation));
      const rows = (await living(to)).filter(({ status }) => status === "running");
      return { up: up.sort(), same: rows.map((row) => key(row.id, row.generation)).sort() };
    }, PATIENT)
    .toSatisfy(({ up, same }) => JSON.stringify(up) === JSON.stringify(same));
}

/** A sandbox's events in their order, each as one letter. */
async function histories({ database }: System): Promise<string[]> {
  const rows = await database.query<{ history: string }>(
    `SELECT string_agg(CASE event_type
              WHEN 'sandbox_created' THEN 'C' WHEN 'sandbox_started' THEN 's' WHEN 'sandbox_running' THEN 'r'
              WHEN 'sandbox_stop_requested' THEN 'q' WHEN 'sandbox_stopped' THEN 'e' WHEN 'sandbox_failed' THEN 'f'
              WHEN 'sandbox_destroyed' THEN 'D' ELSE '' END, '' ORDER BY timestamp, id) AS history
     FROM organization.events GROUP BY payload->>'sandbox_id'`,
  );
  return rows.map(({ history }) => history);
}

// A run is admitted, may come up, and ends once: by itself, or stopped after it was asked to.
const RUN = "sr?(qe|[ef])";
const HISTORY = new RegExp(`^C(${RUN})*(sr?q?)?D?$`);

/** One start more than there is room for; which waits came up before that was chance. */
async function waitForRoom(of: System): Promise<void> {
  const names = Array.from({ length: ROOM + 1 }, (_, i) => `crowd-${i}`);
  const made = await Promise.all(names.map((name) => of.create({}, name)));
  const reasons = async () =>
    (await Promise.all(made.map(({ id }) => of.get(id)))).map(({ statusReason }) => statusReason);
  await expect.poll(reasons, PATIENT).toContain("insufficient_capacity");
  for (const { id } of made) await change.destroySandbox(of.ctx, of.caller, { id });
  await settled(of);
}

/** A start whose engine goes away under it. */
async function waitForEngine(of: System): Promise<void> {
  const { engine, database } = of;
  for (const { id } of await living(of)) await change.destroySandbox(of.ctx, of.caller, { id });
  await settled(of);
  engine.settings.delays = { start: 500, stop: 0 };
  const { id } = await of.create({}, "left");
  const placed =
    "SELECT sandbox_id FROM sandbox.runs WHERE sandbox_id = $1::uuid AND placed_at IS NOT NULL";
  await expect.poll(() => database.query(placed, id), PATIENT).toHaveLength(1);
  engine.setAvailable(false);
  await expect.poll(() => database.query(placed, id), PATIENT).toHaveLength(0);
  expect(await of.get(id)).toMatchObject({ status: "starting", statusReason: "scheduling" });
  engine.setAvailable(true);
  await settled(of);
}

const PATIENT = { timeout: 15_000 };

test(`clients at the same names with an engine in trouble (seed ${SEED}): all settles, and all agrees`, async () => {
  const capacity = { vcpus: ROOM, memoryMib: 4_096 };
  const of = await createSystem({ engine: { capacity } });
  system = of;
  const { engine, database } = of;
  const mostUp = countMachines(engine);
  const overlaps = countOverlaps(engine);
  const end = new AbortController();
  const troubled = trouble(of, randomFrom(SEED), end.signal);
  const handedOver = handOver(of);
  const clients = Array.from({ length: CLIENTS }, (_, i) => randomFrom(SEED + i + 1));
  const waited = vi.spyOn(of.ctx.store, "reportPlacement");
  // Before and while the leader stands still, and under its heir.
  const strange = await Promise.all(clients.map((own) => client(of, own)));
  await handedOver;
  strange.push(...(await Promise.all(clients.map((own) => client(of, own)))));
  end.abort();
  await troubled;
  expect(await epochOf(of)).toBe(2);
  // As many are left as have room, so nothing has to wait any more.
  const last = NAMES.slice(ROOM).map((name) =>
    change.destroySandbox(of.ctx, of.caller, { name }).catch(() => undefined),
  );
  await Promise.all(last);
  expect(strange.flat()).toEqual([]);
  await settled(of);
  expect(overlaps()).toBe(0);
  expect(mostUp()).toBeLessThanOrEqual(ROOM);

  const rows = await living(of);
  const machines = await engine.list();
  const known = new Set(rows.map(({ id }) => id));
  expect(machines.filter(({ sandboxId }) => !known.has(sandboxId))).toEqual([]);
  const open = await database.query<{ id: string }>(
    "SELECT sandbox_id AS id FROM sandbox.runs WHERE closed_at IS NULL ORDER BY id",
  );
  const running = rows.filter(({ status }) => status === "running");
  expect(open.map(({ id }) => id)).toEqual(running.map(({ id }) => id));
  const disordered = await database.query(
    `SELECT admitted_at, placed_at, running_at, stop_admitted_at, machine_ended_at, closed_at FROM sandbox.runs
     WHERE NOT (admitted_at <= coalesce(placed_at, admitted_at)
       AND coalesce(placed_at, admitted_at) <= coalesce(running_at, machine_ended_at, placed_at, admitted_at)
       AND coalesce(running_at, admitted_at) <= coalesce(machine_ended_at, running_at, admitted_at)
       AND coalesce(machine_ended_at, admitted_at) <= coalesce(closed_at, machine_ended_at, admitted_at)
       AND admitted_at <= coalesce(stop_admitted_at, admitted_at))`,
  );
  expect(disordered).toEqual([]);
  expect(wrongPlaces(await database.query<PlacesRow>(PLACES_SQL))).toEqual([]);
  const all = await histories(of);
  expect(all.length).toBeGreaterThan(20);
  expect(all.filter((history) => !HISTORY.test(history))).toEqual([]);
  const [{ runs = -1 } = {}] = await database.query<{ runs: number }>(
    "SELECT count(*)::int AS runs FROM sandbox.runs",
  );
  expect(all.join("").split("s").length - 1).toBe(runs);

  await waitForRoom(of);
  await waitForEngine(of);
  const reasons = waited.mock.calls.map(([, reason]) => reason);
  expect(reasons).toContain("insufficient_capacity");
  expect(reasons).toContain("scheduling");
}, 60_000);
