import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../prisma/database.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { type Observation, report } from "../../../services/sandbox/domain/report.ts";
import { createStore } from "../../../services/sandbox/store.ts";
import { PLACES_SQL, type PlacesRow, wrongPlaces } from "../../support/places.ts";
import { type Random, randomFrom } from "../../support/random.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  setEngine,
  setLimits,
} from "./support.ts";

const SEED = process.env.PLACES_SEED ?? "places";
const LIMITS = {
  max_sandboxes: 5,
  max_concurrent_ephemeral_running: 1,
  max_concurrent_persistent_running: 2,
};
const NAMES = ["one", "two", "three", "four", "five", "six"];
const REFUSALS = [
  "SANDBOX_NOT_FOUND",
  "NAME_ALREADY_EXISTS",
  "INVALID_STATE_TRANSITION",
  "QUOTA_EXCEEDED",
];

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

/** Works on a connection of its own: no statement is run again. */
async function connected(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: bench.url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

async function randomCall(callers: readonly Caller[], random: Random): Promise<unknown> {
  const { ctx, database } = bench;
  const caller = random.pick(callers);
  const key = () => ({ name: random.pick(NAMES) });
  const act = random.weighted({ create: 5, start: 4, stop: 2, destroy: 3, rename: 1, report: 8 });
  if (act === "create") {
    const spec = { lifecycle: { ephemeral: random.chance(0.3) } };
    const rest = { name: random.pick(NAMES), start: random.chance(0.6) };
    return createSandbox(ctx, caller, createInput(spec, rest));
  }
  if (act === "start") return change.startSandbox(ctx, caller, key());
  if (act === "stop") return change.stopSandbox(ctx, caller, key());
  if (act === "destroy") return change.destroySandbox(ctx, caller, key());
  if (act === "rename") return change.renameSandbox(ctx, caller, key(), { ...key(), slug: null });
  const [row] = await database.query<{ id: string; generation: number; destroyed: boolean }>(
    `SELECT id, generation, destroyed_at IS NOT NULL AS destroyed FROM sandbox.sandboxes
     WHERE generation > 0 ORDER BY random() LIMIT 1`,
  );
  return row && report(ctx, row.id, row.generation, observation(row.destroyed, random));
}

function observation(destroyed: boolean, random: Random): Observation {
  const kinds = { placed: 1, running: 3, ended: 3, removed: destroyed ? 4 : 0 };
  const kind = random.weighted(kinds);
  if (kind === "placed" || kind === "removed") return { kind };
  if (kind === "running") return { kind, startedAt: new Date() };
  const cause = random.pick([
    "crashed",
    "lost",
    "start_failed",
    "limit_reached",
    "stopped",
  ] as const);
  return { kind, endedAt: null, cause, message: "" };
}

/** What no snapshot may show. */
async function wrong(limited: Caller): Promise<string[]> {
  const rows = await bench.database.query<PlacesRow>(PLACES_SQL);
  const own = rows.find(({ orgId }) => orgId === limited.orgId);
  const most = Object.values(LIMITS);
  const over = (own?.kept.split("/") ?? []).some((used, i) => Number(used) > (most[i] ?? 0));
  return [...wrongPlaces(rows), ...(over ? [`over its limits: ${own?.kept}`] : [])];
}

test("random verbs and reports at once: at every moment places are what rows say, and within limits", async () => {
  const callers = [newCaller(), newCaller()];
  const [limited] = callers;
  if (!limited) throw new Error("no caller");
  await setLimits(bench.database, limited.orgId, LIMITS);
  const strange: unknown[] = [];
  let live = 12;
  let done = 0;
  const client = async (random: Random) => {
    for (let call = 0; call < 200; call += 1)
      try {
        await randomCall(callers, random);
        done += 1;
      } catch (error) {
        if (!(error instanceof ServiceError && REFUSALS.includes(error.reason)))
          strange.push(error);
      }
    live -= 1;
  };
  const watcher = async () => {
    let looks = 0;
    for (; live > 0; looks += 1) strange.push(...(await wrong(limited)));
    return looks;
  };
  const random = randomFrom(SEED);
  const clients = Array.from({ length: live }, (_, i) => client(random.fork(`${i}`)));
  const [looks] = await Promise.all([watcher(), ...clients]);
  expect(strange).toEqual([]);
  expect(looks).toBeGreaterThan(10);
  expect(done).toBeGreaterThan(500);
  expect(await wrong(limited)).toEqual([]);
}, 120_000);

test("creates, destroys and renames of the same few names never wait for each other in a circle", async () => {
  const { orgId, actor } = newCaller();
  const codes = new Map<string, number>();
  const client = async (connection: pg.Client, random: Random) => {
    const query: Database["query"] = async (sql, ...values) =>
      (await connection.query(sql, values)).rows;
    const store = createStore({ ...bench.database, query });
    for (let call = 0; call < 150; call += 1) {
      const key = () => ({ name: random.pick(NAMES) });
      const act = random.weighted({ create: 4, destroy: 3, start: 1, rename: 2 });
      try {
        if (act === "create") {
          const { spec } = createInput();
          const id = crypto.randomUUID();
          const made = { id, orgId, name: random.pick(NAMES), slug: id, spec };
          await store.create(
            { ...made, requires: [], sealed: null, start: false, volumes: [] },
            actor,
          );
        } else if (act === "rename")
          await store.rename(orgId, key(), actor, { ...key(), slug: null });
        else await store[act](orgId, key(), actor);
      } catch (error) {
        const code = error instanceof pg.DatabaseError ? (error.code ?? "none") : String(error);
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    }
  };
  const random = randomFrom(SEED);
  const clients = Array.from({ length: 12 }, (_, i) =>
    connected((connection) => client(connection, random.fork(`${i}`))),
  );
  await Promise.all(clients);
  // Taken names, and no deadlock.
  expect([...codes.keys()]).toEqual(["23505"]);
  expect(wrongPlaces(await bench.database.query<PlacesRow>(PLACES_SQL))).toEqual([]);
}, 120_000);

test("a verb that changes places locks nothing while it waits for them", async () => {
  const caller = newCaller();
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  await connected(async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT FROM sandbox.places WHERE org_id = $1 FOR UPDATE", [caller.orgId]);
    const ended = { kind: "ended", endedAt: null, cause: "crashed", message: "" } as const;
    const waiting = [
      change.stopSandbox(bench.ctx, caller, { id }),
      change.destroySandbox(bench.ctx, caller, { id }),
      change.startSandbox(bench.ctx, caller, { id }),
      change.renameSandbox(bench.ctx, caller, { id }, { name: "other", slug: null }),
      report(bench.ctx, id, 1, ended),
    ];
    const settled = Promise.allSettled(waiting);
    await expect.poll(waiters, { timeout: 10_000 }).toBe(waiting.length);
    const lock = "SELECT id FROM sandbox.sandboxes WHERE id = $1 FOR UPDATE NOWAIT";
    expect((await client.query(lock, [id])).rows).toEqual([{ id }]);
    await client.query("COMMIT");
    await settled;
  });
  expect(wrongPlaces(await bench.database.query<PlacesRow>(PLACES_SQL))).toEqual([]);
});

test("the end of a run that was to stop waits for no places", async () => {
  const caller = newCaller();
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  await change.stopSandbox(bench.ctx, caller, { id });
  await connected(async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT FROM sandbox.places WHERE org_id = $1 FOR UPDATE", [caller.orgId]);
    const ended = { kind: "ended", endedAt: null, cause: "stopped", message: "" } as const;
    expect(await report(bench.ctx, id, 1, ended)).toBe(true);
    await client.query("COMMIT");
  });
});

async function waiters(): Promise<number> {
  const [row] = await bench.database.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  );
  return row?.n ?? -1;
}

test("none of this was a deadlock", async () => {
  // Each connection tells its count when it ends.
  await bench.database.close();
  await connected(async (client) => {
    const others = async () => {
      const sql = `SELECT count(*)::int AS n FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`;
      return (await client.query(sql)).rows;
    };
    await expect.poll(others, { timeout: 10_000 }).toEqual([{ n: 0 }]);
    const sql = "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()";
    expect((await client.query(sql)).rows).toEqual([{ deadlocks: 0 }]);
  });
});
