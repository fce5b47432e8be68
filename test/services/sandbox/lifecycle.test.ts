import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ServiceError } from "../../../runtime/errors.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import { type Sandbox, STATUSES, type Status } from "../../../services/sandbox/domain/sandbox.ts";
import { type Bench, createBench, createInput, newCaller, setEngine } from "./support.ts";

let bench: Bench;
const caller = newCaller();

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

async function sandboxIn(status: Status): Promise<Sandbox> {
  const { ctx } = bench;
  const { id } = await createSandbox(ctx, caller, createInput({}, { start: status !== "created" }));
  const up = () => report(ctx, id, 1, { kind: "running", startedAt: new Date() });
  const down = (cause: "stopped" | "crashed") =>
    report(ctx, id, 1, { kind: "ended", endedAt: new Date(), cause, message: "it broke" });
  if (status === "running" || status === "stopping") await up();
  if (status === "stopping") await change.stopSandbox(ctx, caller, { id });
  if (status === "stopped") await down("stopped");
  if (status === "failed") await down("crashed");
  const sandbox = await change.getSandbox(ctx, caller, { id });
  expect(sandbox.status).toBe(status);
  return sandbox;
}

// The table of the public contract, cell by cell.
const TABLE: Record<Status, { start: Status | 409; stop: Status | 409 }> = {
  created: { start: "starting", stop: 409 },
  starting: { start: 409, stop: "stopping" },
  running: { start: 409, stop: "stopping" },
  stopping: { start: 409, stop: 409 },
  stopped: { start: "starting", stop: 409 },
  failed: { start: "starting", stop: 409 },
};

describe.each(STATUSES)("from %s", (from) => {
  test.each(["start", "stop"] as const)("%s", async (action) => {
    const { id } = await sandboxIn(from);
    const verb = action === "start" ? change.startSandbox : change.stopSandbox;
    const expected = TABLE[from][action];
    const did = verb(bench.ctx, caller, { id });
    if (expected === 409) {
      await expect(did).rejects.toMatchObject({
        reason: "INVALID_STATE_TRANSITION",
        metadata: { from, action },
      } satisfies Partial<ServiceError>);
      expect((await change.getSandbox(bench.ctx, caller, { id })).status).toBe(from);
    } else {
      expect((await did).status).toBe(expected);
    }
  });

  test("destroy: gone at once, name and slug free, and its row waits for the engine", async () => {
    const sandbox = await sandboxIn(from);
    await change.destroySandbox(bench.ctx, caller, { id: sandbox.id });
    await expect(change.getSandbox(bench.ctx, caller, { id: sandbox.id })).rejects.toMatchObject({
      reason: "SANDBOX_NOT_FOUND",
    });
    const { name, slug } = sandbox;
    const heir = await createSandbox(bench.ctx, caller, createInput({}, { name, slug }));
    expect(heir).toMatchObject({ name, slug });
    expect(await report(bench.ctx, sandbox.id, 0, { kind: "removed" })).toBe(true);
    const open = await bench.database.query(
      "SELECT 1 AS one FROM sandbox.runs WHERE sandbox_id = $1::uuid AND closed_at IS NULL",
      sandbox.id,
    );
    expect(open).toEqual([]);
  });
});

describe("what the engine reports", () => {
  test.each([
    ["exited", "stopped"],
    ["limit_reached", "stopped"],
    ["crashed", "failed"],
    ["out_of_memory", "failed"],
    ["lost", "failed"],
  ] as const)("running, then %s: %s", async (cause, status) => {
    const { id } = await sandboxIn("running");
    await report(bench.ctx, id, 1, { kind: "ended", endedAt: null, cause, message: "told" });
    const sandbox = await change.getSandbox(bench.ctx, caller, { id });
    expect(sandbox).toMatchObject({
      status,
      lastFailureMessage: status === "failed" ? "told" : null,
      stoppedAt: expect.any(Date),
    });
  });

  test("starting, then failed; the next start clears the message and keeps nothing of the run", async () => {
    const { id } = await sandboxIn("starting");
    const end = {
      kind: "ended",
      endedAt: null,
      cause: "start_failed",
      message: "no image",
    } as const;
    await report(bench.ctx, id, 1, end);
    expect(await change.getSandbox(bench.ctx, caller, { id })).toMatchObject({
      status: "failed",
      startedAt: null,
      lastFailureMessage: "no image",
    });
    expect(await change.startSandbox(bench.ctx, caller, { id })).toMatchObject({
      status: "starting",
      statusReason: "scheduling",
      lastFailureMessage: null,
      stoppedAt: null,
      generation: 2,
    });
  });

  test("a stop that was asked for ends stopped even if the machine had to be killed", async () => {
    const { id } = await sandboxIn("stopping");
    await report(bench.ctx, id, 1, {
      kind: "ended",
      endedAt: null,
      cause: "crashed",
      message: "137",
    });
    expect(await change.getSandbox(bench.ctx, caller, { id })).toMatchObject({
      status: "stopped",
      lastFailureMessage: null,
    });
  });

  test("a stop that the engine did not get done ends failed", async () => {
    const { id } = await sandboxIn("stopping");
    const end = {
      kind: "ended",
      endedAt: null,
      cause: "stop_failed",
      message: "too long",
    } as const;
    expect(await report(bench.ctx, id, 1, end)).toBe(true);
    expect(await change.getSandbox(bench.ctx, caller, { id })).toMatchObject({
      status: "failed",
      lastFailureMessage: "too long",
    });
  });

  test("a start that is no longer wanted is not placed", async () => {
    const { id } = await sandboxIn("starting");
    await change.stopSandbox(bench.ctx, caller, { id });
    expect(await report(bench.ctx, id, 1, { kind: "placed" })).toBe(false);
  });

  test("a machine that comes up behind a stop does not run again", async () => {
    const { id } = await sandboxIn("starting");
    await change.stopSandbox(bench.ctx, caller, { id });
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    expect((await change.getSandbox(bench.ctx, caller, { id })).status).toBe("stopping");
  });

  test("reports only advance: a repeated, late or foreign one changes nothing", async () => {
    const { id } = await sandboxIn("running");
    const running = { kind: "running", startedAt: new Date() } as const;
    const ended = { kind: "ended", endedAt: null, cause: "exited", message: "" } as const;
    expect(await report(bench.ctx, id, 1, running)).toBe(false);
    expect(await report(bench.ctx, id, 1, { kind: "placed" })).toBe(false);
    expect(await report(bench.ctx, id, 2, ended)).toBe(false);
    expect(await report(bench.ctx, id, 1, ended)).toBe(true);
    expect(await report(bench.ctx, id, 1, ended)).toBe(false);
    expect(await report(bench.ctx, id, 1, running)).toBe(false);
    expect((await change.getSandbox(bench.ctx, caller, { id })).status).toBe("stopped");
  });

  test("status_reason: scheduling, insufficient_capacity while there is no room, none once placed", async () => {
    const { id } = await sandboxIn("starting");
    const reason = async () => (await change.getSandbox(bench.ctx, caller, { id })).statusReason;
    expect(await reason()).toBe("scheduling");
    await report(bench.ctx, id, 1, { kind: "waiting", reason: "insufficient_capacity" });
    expect(await reason()).toBe("insufficient_capacity");
    await report(bench.ctx, id, 1, { kind: "placed" });
    expect(await reason()).toBeNull();
  });
});

test("every change writes exactly one event, in order", async () => {
  const own = newCaller();
  const { ctx, database } = bench;
  const { id } = await createSandbox(ctx, own, createInput({}, { start: true }));
  await report(ctx, id, 1, { kind: "placed" });
  await report(ctx, id, 1, { kind: "running", startedAt: new Date() });
  await change.renameSandbox(ctx, own, { id }, { name: "other", slug: null });
  await change.renameSandbox(ctx, own, { id }, { name: "other", slug: null });
  await change.stopSandbox(ctx, own, { id });
  await report(ctx, id, 1, { kind: "ended", endedAt: null, cause: "stopped", message: "" });
  await change.startSandbox(ctx, own, { id });
  await report(ctx, id, 2, { kind: "ended", endedAt: null, cause: "start_failed", message: "no" });
  await change.destroySandbox(ctx, own, { id });
  await report(ctx, id, 0, { kind: "removed" });
  const events = await database.query<{ event_type: string; kind: string }>(
    `SELECT event_type, actor->>'kind' AS kind FROM organization.events
     WHERE org_id = $1::uuid ORDER BY timestamp, id`,
    own.orgId,
  );
  expect(events.map(({ event_type, kind }) => `${event_type} by ${kind}`)).toEqual([
    "sandbox_created by api_key",
    "sandbox_started by api_key",
    "sandbox_running by system",
    "sandbox_renamed by api_key",
    "sandbox_stop_requested by api_key",
    "sandbox_stopped by system",
    "sandbox_started by api_key",
    "sandbox_failed by system",
    "sandbox_destroyed by api_key",
  ]);
});

describe("races", () => {
  test("50 starts at once: one is admitted", async () => {
    const { id } = await sandboxIn("stopped");
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, () => change.startSandbox(bench.ctx, caller, { id })),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await change.getSandbox(bench.ctx, caller, { id })).generation).toBe(2);
  });

  test("50 creates of one name at once: one is made, the others learn whose it is", async () => {
    const input = createInput({}, { name: "wanted" });
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, () => createSandbox(bench.ctx, caller, input)),
    );
    const made = tries.filter((result) => result.status === "fulfilled");
    expect(made).toHaveLength(1);
    const refused = tries.find((result) => result.status === "rejected");
    expect(refused?.reason).toMatchObject({
      reason: "NAME_ALREADY_EXISTS",
      metadata: { field: "name", sandbox_id: made[0]?.value.id, status: "created" },
    });
  });

  test("starts, stops and ends at once: never two open runs, never an overlap, always an answer", async () => {
    const { id } = await sandboxIn("created");
    const { ctx, database } = bench;
    const end = { kind: "ended", endedAt: null, cause: "exited", message: "" } as const;
    for (let round = 0; round < 10; round += 1) {
      const generation = (await change.getSandbox(ctx, caller, { id })).generation;
      await Promise.allSettled([
        change.startSandbox(ctx, caller, { id }),
        change.stopSandbox(ctx, caller, { id }),
        report(ctx, id, generation, end),
        report(ctx, id, generation + 1, { kind: "running", startedAt: new Date() }),
        report(ctx, id, generation + 1, end),
      ]);
    }
    const [counts] = await database.query<{ open: bigint; runs: bigint }>(
      `SELECT count(*) FILTER (WHERE closed_at IS NULL) AS open, count(*) AS runs
       FROM sandbox.runs WHERE sandbox_id = $1::uuid`,
      id,
    );
    const { status, generation } = await change.getSandbox(ctx, caller, { id });
    expect(Number(counts?.runs)).toBe(generation);
    expect(Number(counts?.open)).toBe(["starting", "running", "stopping"].includes(status) ? 1 : 0);
  });
});
