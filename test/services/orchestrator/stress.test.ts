import { afterEach, expect, test } from "vitest";
import { ServiceError } from "../../../runtime/errors.ts";
import type { SimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
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

/** Numbers from 0 to below 1, the same ones for the same seed. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const pause = (ms: number) => new Promise((go) => setTimeout(go, ms));

/** Calls what clients call, on few names, and says which errors were no refusals. */
async function client({ ctx, caller }: System, random: () => number): Promise<unknown[]> {
  const strange: unknown[] = [];
  const pick = () => NAMES[Math.floor(random() * NAMES.length)] ?? "";
  const calls = [
    () => createSandbox(ctx, caller, createInput({}, { name: pick(), start: random() < 0.8 })),
    () => change.startSandbox(ctx, caller, { name: pick() }),
    () => change.startSandbox(ctx, caller, { name: pick() }),
    () => change.stopSandbox(ctx, caller, { name: pick() }),
    () => change.destroySandbox(ctx, caller, { name: pick() }),
    () => change.renameSandbox(ctx, caller, { name: pick() }, { name: pick(), slug: null }),
  ];
  for (let call = 0; call < CALLS_EACH; call += 1) {
    if (random() < 0.7) await pause(random() * 80);
    try {
      await calls[Math.floor(random() * calls.length)]?.();
    } catch (error) {
      if (!(error instanceof ServiceError && REFUSALS.includes(error.reason))) strange.push(error);
    }
  }
  return strange;
}

/** Makes the engine slow, full of faults, and away at times, until it is told to end. */
async function trouble({ engine, database }: System, random: () => number, end: AbortSignal) {
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
  await expect.poll(() => epochOf(of), { timeout: 15_000 }).toBe(2);
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
  await expect.poll(() => to.database.query(moving), { timeout: 15_000 }).toEqual([]);
  // And what the engine has is what the rows say, once it was compared.
  const key = (id: string, generation: number) => `${id} ${generation}`;
  await expect
    .poll(
      async () => {
        const machines = (await to.engine.list()).filter(({ state }) => state === "running");
        const up = machines.map(({ sandboxId, generation }) => key(sandboxId, generation));
        const rows = (await living(to)).filter(({ status }) => status === "running");
        return { up: up.sort(), same: rows.map((row) => key(row.id, row.generation)).sort() };
      },
      { timeout: 15_000 },
    )
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

test(`clients at the same names with an engine in trouble (seed ${SEED}): all settles, and all agrees`, async () => {
  const capacity = { vcpus: ROOM, memoryMib: 4_096 };
  const of = await createSystem({ engine: { capacity } });
  system = of;
  const { engine, database } = of;
  const mostUp = countMachines(engine);
  const overlaps = countOverlaps(engine);
  const random = randomFrom(SEED);
  const end = new AbortController();
  const troubled = trouble(of, random, end.signal);
  const handedOver = handOver(of);
  const clients = Array.from({ length: CLIENTS }, (_, i) => randomFrom(SEED + i + 1));
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
  const all = await histories(of);
  expect(all.length).toBeGreaterThan(20);
  expect(all.filter((history) => !HISTORY.test(history))).toEqual([]);
  const [{ runs = -1 } = {}] = await database.query<{ runs: number }>(
    "SELECT count(*)::int AS runs FROM sandbox.runs",
  );
  expect(all.join("").split("s").length - 1).toBe(runs);
}, 60_000);
