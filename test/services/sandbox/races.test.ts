import { afterAll, beforeAll, expect, test } from "vitest";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import type { Store } from "../../../services/sandbox/store.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  overlap as overlapping,
  setEngine,
} from "./support.ts";

let bench: Bench;
const caller = newCaller();
const { orgId, actor } = caller;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

const overlap = <T>(first: (store: Store) => Promise<unknown>, second: () => Promise<T>) =>
  overlapping(bench, first, second);

async function runOf(id: string) {
  const rows = await bench.database.query(
    `SELECT desired, stop_admitted_at IS NOT NULL AS stopped, s.status
     FROM sandbox.runs r JOIN sandbox.sandboxes s ON s.id = r.sandbox_id
     WHERE r.sandbox_id = $1::uuid AND r.generation = s.generation`,
    id,
  );
  return rows[0];
}

test("a stop that met a start under way stops that start's run", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput());
  await overlap(
    (store) => store.start(orgId, { id }, actor),
    () => change.stopSandbox(bench.ctx, caller, { id }),
  );
  expect(await runOf(id)).toEqual({ status: "stopping", desired: "stopped", stopped: true });
});

test("a destroy that met a start under way ends that start's run", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput());
  await overlap(
    (store) => store.start(orgId, { id }, actor),
    () => change.destroySandbox(bench.ctx, caller, { id }),
  );
  expect(await runOf(id)).toMatchObject({ desired: "stopped", stopped: true });
});

test("a start that met the end of the run before it is the next run", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  const started = await overlap(
    (store) => {
      const end = {
        endedAt: null,
        outcome: "failed",
        message: "it broke",
        despiteStop: false,
        by: "engine",
        lingerSecs: 30,
      } as const;
      return store.reportEnded({ sandboxId: id, generation: 1, lease: null }, end);
    },
    () => change.startSandbox(bench.ctx, caller, { id }),
  );
  expect(started).toMatchObject({ status: "starting", generation: 2 });
});

test("two sandboxes that swap their names at once: one is told that its name is taken", async () => {
  const [a, b] = await Promise.all(
    ["swap-a", "swap-b"].map((name) => createSandbox(bench.ctx, caller, createInput({}, { name }))),
  );
  const swap = (id = "", name: string) =>
    change.renameSandbox(bench.ctx, caller, { id }, { name, slug: null });
  for (let round = 0; round < 10; round += 1) {
    const both = await Promise.allSettled([swap(a?.id, "swap-b"), swap(b?.id, "swap-a")]);
    for (const result of both)
      if (result.status === "rejected")
        expect(result.reason).toMatchObject({ reason: "NAME_ALREADY_EXISTS" });
  }
});

test("the longest time limits that a client may ask for do not keep a run from running", async () => {
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  const lifecycle = { maxDurationSecs: most, idleTimeoutSecs: most };
  const { id } = await createSandbox(
    bench.ctx,
    caller,
    createInput({ lifecycle }, { start: true }),
  );
  const startedAt = new Date();
  expect(await report(bench.ctx, id, 1, { kind: "running", startedAt })).toBe(true);
});

test("what an engine says of a failure is kept though PostgreSQL cannot hold all of it", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  const message = `\0exec\0 failed: ${"x".repeat(1_000_000)}`;
  const ended = { kind: "ended", endedAt: null, cause: "start_failed", message } as const;
  expect(await report(bench.ctx, id, 1, ended)).toBe(true);
  const { lastFailureMessage } = await change.getSandbox(bench.ctx, caller, { id });
  expect(lastFailureMessage).toMatch(/^exec failed: x+…$/);
  expect(lastFailureMessage?.length).toBeLessThan(5_000);
});

test("an engine's clock that counts in milliseconds does not start a machine before it was placed", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput({}, { start: true }));
  await report(bench.ctx, id, 1, { kind: "placed" });
  const startedAt = new Date(Date.now() - 60_000);
  await report(bench.ctx, id, 1, { kind: "running", startedAt });
  const [row] = await bench.database.query(
    "SELECT running_at >= placed_at AS ordered FROM sandbox.runs WHERE sandbox_id = $1::uuid",
    id,
  );
  expect(row).toEqual({ ordered: true });
});

test("a clock that was set back delays neither a start nor a stop", async () => {
  const { id } = await createSandbox(bench.ctx, caller, createInput());
  await bench.database.query(
    `UPDATE sandbox.sandboxes SET created_at = now() + interval '1 hour', stopped_at = now() + interval '1 hour',
       status = 'stopped' WHERE id = $1::uuid RETURNING id`,
    id,
  );
  const due = () =>
    bench.database.query(
      "SELECT due_at <= clock_timestamp() AS now FROM sandbox.runs WHERE sandbox_id = $1::uuid",
      id,
    );
  await change.startSandbox(bench.ctx, caller, { id });
  expect(await due()).toEqual([{ now: true }]);
  await change.stopSandbox(bench.ctx, caller, { id });
  expect(await due()).toEqual([{ now: true }]);
});
