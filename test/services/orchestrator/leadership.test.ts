import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, type Mock, test, vi } from "vitest";
import { type Database, openDatabase } from "../../../prisma/database.ts";
import type { OrchestratorContext } from "../../../services/orchestrator/context.ts";
import { createSimulatedEngine } from "../../../services/orchestrator/engines/simulated.ts";
import { seekLeadership } from "../../../services/orchestrator/leadership.ts";
import { createStore } from "../../../services/orchestrator/store.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let at: TestDatabase;
let database: Database;
let contenders: Contender[] = [];
let mostAtOnce: number;

beforeEach(async () => {
  mostAtOnce = 0;
  at = await createTestDatabase();
  database = openDatabase(at.url, { poolSize: 20 });
});
afterEach(async () => {
  for (const contender of contenders) await contender.stop();
  contenders = [];
  await database.close();
  await at.close();
});

interface Contender {
  leads(): boolean;
  store: OrchestratorContext["store"];
  warn: Mock<(fields: object, message: string) => void>;
  stop(): Promise<void>;
}

/** Seeks to lead an engine; `losing` is how long it takes to let go. */
async function contend(
  losing: () => Promise<void> = async () => {},
  engine = simulated,
): Promise<Contender> {
  let leading = false;
  const store = createStore(database);
  const warn = vi.fn();
  const log = { info: () => {}, warn, error: () => {} };
  // The parts of a context that leadership knows.
  const ctx = { store, log, engine, capacity: () => undefined } as unknown as OrchestratorContext;
  const leadership = seekLeadership(ctx, {
    lead: () => {
      leading = true;
      const leaders = contenders.filter((contender) => contender.leads());
      mostAtOnce = Math.max(mostAtOnce, leaders.length);
    },
    lose: async () => {
      leading = false;
      await losing();
    },
  });
  await leadership.tried;
  const contender = { leads: () => leading, store, warn, stop: leadership.stop };
  contenders.push(contender);
  return contender;
}
const simulated = createSimulatedEngine({ features: [] });

async function holder(): Promise<string | undefined> {
  const [row] = await database.query<{ holder: string }>("SELECT holder FROM orchestrator.leases");
  return row?.holder;
}

test("a database that stops answering ends leadership before another's can begin", async () => {
  const first = await contend();
  const second = await contend();
  expect([first.leads(), second.leads()]).toEqual([true, false]);
  const hold = vi.spyOn(first.store, "holdLease").mockReturnValue(new Promise(() => {}));
  await expect.poll(second.leads, { timeout: 15_000 }).toBe(true);
  expect(mostAtOnce).toBe(1);
  hold.mockRestore();
});

test("one that learns that another holds the lease stops at once, and leads again when it may", async () => {
  const only = await contend();
  const other = randomUUID();
  await database.query("UPDATE orchestrator.leases SET holder = $1::uuid RETURNING holder", other);
  await expect.poll(only.leads, { timeout: 3_000 }).toBe(false);
  expect(await holder()).toBe(other);
  await expect.poll(only.leads, { timeout: 10_000 }).toBe(true);
});

test("one that has not let go yet does not take the lease again", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = await contend(() => promise);
  await database.query(
    "UPDATE orchestrator.leases SET holder = $1::uuid RETURNING holder",
    randomUUID(),
  );
  await expect.poll(slow.leads, { timeout: 3_000 }).toBe(false);
  const heir = await contend();
  await expect.poll(heir.leads, { timeout: 10_000 }).toBe(true);
  expect(slow.leads()).toBe(false);
  resolve();
});

test("one engine leads a database: another stands by with a warning, and leads when it is gone", async () => {
  const first = await contend();
  const other = createSimulatedEngine({ name: "other", features: [] });
  const second = await contend(undefined, other);
  await expect.poll(() => second.warn.mock.calls.length).toBe(1);
  expect(second.warn.mock.calls[0]).toEqual([
    { engine: "other", leads: "simulated" },
    expect.stringContaining("standing by"),
  ]);
  expect([first.leads(), second.leads()]).toEqual([true, false]);
  await first.stop();
  await expect.poll(second.leads, { timeout: 15_000 }).toBe(true);
  expect(mostAtOnce).toBe(1);
  expect(second.warn).toHaveBeenCalledTimes(1);
});

test("of engines that ask at the same moment one leads", async () => {
  const names = Array.from({ length: 8 }, (_, i) => `engine-${i}`);
  const store = createStore(database);
  const epochs = await Promise.all(
    names.map((engine) =>
      store.holdLease({
        engine,
        holder: randomUUID(),
        ttlSecs: 5,
        features: [],
        capacity: { vcpus: 1, memoryMib: 1 },
      }),
    ),
  );
  expect(epochs.filter((epoch) => epoch !== undefined)).toHaveLength(1);
});
