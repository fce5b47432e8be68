import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withClient } from "../../../runtime/postgres/connect.ts";
import { type BillingBench, createBillingBench, insertRuns } from "./support.ts";

let bench: BillingBench;
beforeEach(async () => {
  bench = await createBillingBench();
});
afterEach(() => bench.close());

const DAYS = 5;

/** Runs of ten organizations, each of a second on each of some days. */
async function manyRuns(count: number): Promise<void> {
  const orgs = Array.from({ length: 10 }, () => randomUUID());
  await insertRuns(
    bench.database,
    Array.from({ length: count }, (_, i) => ({
      orgId: orgs[i % orgs.length] ?? "",
      runningAt: `2026-04-0${1 + (i % DAYS)}T23:59:59.500Z`,
      machineEndedAt: `2026-04-0${2 + (i % DAYS)}T00:00:00.500Z`,
    })),
  );
}

const sums = async () => {
  const [row] = await bench.database.query<Record<string, string>>(
    `SELECT (SELECT count(*)::text FROM sandbox.runs WHERE metered_at IS NULL) AS left,
            (SELECT count(*)::text FROM billing.run_days) AS pieces,
            (SELECT sum(end_ms - start_ms)::text FROM billing.run_days) AS ms,
            (SELECT sum(vcpu)::text FROM billing.daily) AS daily`,
  );
  return row;
};

test("eight at once roll up each run once", async () => {
  await manyRuns(1_000);
  const some = async () => {
    while ((await bench.ctx.store.rollUp(17)) > 0);
  };
  await Promise.all(Array.from({ length: 8 }, some));
  expect(await sums()).toEqual({ left: "0", pieces: "2000", ms: "1000000", daily: "1000000" });
});

test("what is cut off before its commit is undone, and done by the next one", async () => {
  await manyRuns(100);
  // What a process had done when it was killed: taken, and nothing of it committed.
  await withClient(bench.url, async (client) => {
    await client.query("BEGIN");
    await client.query("SELECT count(*) FROM sandbox.take_closed_runs(60)");
    // The others do not wait for it.
    expect(await bench.ctx.store.rollUp(100)).toBe(40);
  });
  expect(await bench.ctx.store.rollUp(100)).toBe(60);
  expect(await sums()).toEqual({ left: "0", pieces: "200", ms: "100000", daily: "100000" });
});

test("open runs are left, and runs that never ran are taken for nothing", async () => {
  const orgId = randomUUID();
  await insertRuns(bench.database, [
    { orgId, runningAt: "2026-04-01T00:00:00Z" },
    { orgId, admittedAt: "2026-04-01T00:00:00Z", machineEndedAt: "2026-04-01T00:01:00Z" },
  ]);
  expect(await bench.ctx.store.rollUp(10)).toBe(1);
  expect(await sums()).toEqual({ left: "1", pieces: "0", ms: null, daily: null });
});
