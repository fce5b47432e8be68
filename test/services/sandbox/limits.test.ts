import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  setEngine,
  setLimits,
  setPlan,
} from "./support.ts";

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterAll(() => bench.close());

async function limited(limits: Record<string, number | null>): Promise<Caller> {
  const caller = newCaller();
  await setLimits(bench.database, caller.orgId, limits);
  return caller;
}

/** `ok`, or why it was refused. */
async function outcome(doing: Promise<unknown>) {
  try {
    await doing;
    return "ok";
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { quota, limit, used, requested } = error.metadata;
    return error.reason === "QUOTA_EXCEEDED"
      ? `${quota} ${limit} ${used} ${requested}`
      : error.reason;
  }
}

const create = (caller: Caller, resources = {}, start = false) =>
  createSandbox(bench.ctx, caller, createInput({ resources }, { start }));

describe.each([
  ["max_vcpus_per_sandbox", 2, { vcpus: 2 }, { vcpus: 3 }, 3],
  ["max_memory_mib_per_sandbox", 512, { memoryMib: 512 }, { memoryMib: 513 }, 513],
  ["max_disk_size_mib_per_sandbox", 100, { diskSizeMib: 100 }, { diskSizeMib: 101 }, 101],
])("%s", (quota, limit, fits, exceeds, requested) => {
  test("bounds a create, and a start of what was made before", async () => {
    const caller = await limited({});
    const { id } = await create(caller, exceeds);
    await setLimits(bench.database, caller.orgId, { [quota]: limit });
    const refused = `${quota} ${limit} 0 ${requested}`;
    expect(await outcome(create(caller, exceeds))).toBe(refused);
    expect(await outcome(create(caller, exceeds, true))).toBe(refused);
    expect(await outcome(change.startSandbox(bench.ctx, caller, { id }))).toBe(refused);
    expect(await outcome(create(caller, fits, true))).toBe("ok");
  });
});

test("a disk without a size of its own is within any limit", async () => {
  const caller = await limited({ max_disk_size_mib_per_sandbox: 0 });
  expect(await outcome(create(caller, {}, true))).toBe("ok");
});

test("overrides win over the plan, null ones too; what they leave out is the plan's", async () => {
  const caller = newCaller();
  await setPlan(bench.database, caller.orgId, "sample-free");
  expect(await outcome(create(caller, { vcpus: 3 }))).toBe("max_vcpus_per_sandbox 2 0 3");
  await setLimits(bench.database, caller.orgId, { max_vcpus_per_sandbox: 3 });
  expect(await outcome(create(caller, { vcpus: 3 }))).toBe("ok");
  expect(await outcome(create(caller, { vcpus: 4 }))).toBe("max_vcpus_per_sandbox 3 0 4");
  await setLimits(bench.database, caller.orgId, { max_vcpus_per_sandbox: null });
  expect(await outcome(create(caller, { vcpus: 255 }))).toBe("ok");
  expect(await outcome(create(caller, { memoryMib: 4097 }))).toBe(
    "max_memory_mib_per_sandbox 4096 0 4097",
  );
});

test("the state is told before the engine, the engine before quotas", async () => {
  const caller = await limited({});
  const { id } = await create(caller, {}, true);
  const idle = await create(caller);
  await setLimits(bench.database, caller.orgId, { max_concurrent_persistent_running: 1 });
  const start = (of: string) => outcome(change.startSandbox(bench.ctx, caller, { id: of }));
  expect(await start(id)).toBe("INVALID_STATE_TRANSITION");
  expect(await start(idle.id)).toBe("max_concurrent_persistent_running 1 1 1");
  await setEngine(bench.database, { alive: false });
  expect(await start(id)).toBe("INVALID_STATE_TRANSITION");
  expect(await start(idle.id)).toBe("ORCHESTRATOR_UNREACHABLE");
  expect(await outcome(create(caller, {}, true))).toBe("ORCHESTRATOR_UNREACHABLE");
  await setEngine(bench.database);
});

test("a pool that a hard-capped plan has used up lets nothing start", async () => {
  const caller = newCaller();
  await setPlan(bench.database, caller.orgId, "sample-free");
  const { id } = await create(caller);
  const running = await create(caller, {}, true);
  await bench.database.query(
    `INSERT INTO billing.exhaustions (org_id, month, pool, at)
     VALUES ($1::uuid, date_trunc('month', now() AT TIME ZONE 'UTC')::date, 'included_vcpu_hours', now()) RETURNING org_id`,
    caller.orgId,
  );
  const refused = {
    reason: "QUOTA_EXCEEDED",
    metadata: { quota: "included_vcpu_hours", limit: "50" },
  };
  const start = change.startSandbox(bench.ctx, caller, { id });
  await expect(start).rejects.toMatchObject(refused);
  await expect(start).rejects.not.toHaveProperty("metadata.used");
  await expect(create(caller, {}, true)).rejects.toMatchObject(refused);
  expect(await outcome(create(caller))).toBe("ok");
  expect(await outcome(change.stopSandbox(bench.ctx, caller, { id: running.id }))).toBe("ok");
});

describe("max_uptime_minutes_per_sandbox", () => {
  const run = async (id: string) =>
    bench.database.query(
      `SELECT uptime_secs::int AS uptime, limit_secs::int AS limit, extract(epoch FROM due_at - running_at)::int AS due
       FROM sandbox.runs WHERE sandbox_id = $1::uuid AND generation = 1`,
      id,
    );

  /** Runs until its limit. @returns its run, and who ended it */
  async function live(minutes: number, lifecycle: object, workloadEnds = false) {
    const caller = await limited({ max_uptime_minutes_per_sandbox: minutes });
    const spec = { lifecycle, ...(workloadEnds && { runtime: { cmd: { values: ["true"] } } }) };
    const { id } = await createSandbox(bench.ctx, caller, createInput(spec, { start: true }));
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    if (workloadEnds)
      await report(bench.ctx, id, 1, { kind: "workload_ended", endedAt: new Date() });
    const [row] = await run(id);
    await report(bench.ctx, id, 1, {
      kind: "ended",
      endedAt: null,
      cause: "limit_reached",
      message: "",
    });
    const [event] = await bench.database.query<{ actor: unknown }>(
      "SELECT actor FROM organization.events WHERE org_id = $1::uuid AND event_type = 'sandbox_stopped'",
      caller.orgId,
    );
    return { row, actor: event?.actor };
  }
  const uptime = {
    kind: "system",
    code: "max_uptime",
    label: "Longest uptime of the plan reached",
  };

  test("ends a run that would be up for longer", async () => {
    expect(await live(2, {})).toEqual({
      row: { uptime: 120, limit: 120, due: 120 },
      actor: uptime,
    });
    const longer = { maxDurationSecs: 121n, idleTimeoutSecs: 500n };
    expect(await live(2, longer)).toMatchObject({ row: { limit: 120, due: 120 }, actor: uptime });
    expect(await live(2, { idleTimeoutSecs: 300n }, true)).toMatchObject({
      row: { limit: 120, due: 120 },
      actor: uptime,
    });
  });

  test("leaves an end to the sandbox's own limits that come first", async () => {
    expect(await live(2, { maxDurationSecs: 120n })).toMatchObject({
      row: { limit: 120, due: 120 },
      actor: { code: "max_duration" },
    });
    expect(await live(2, { idleTimeoutSecs: 60n })).toMatchObject({
      row: { limit: 60, due: 60 },
      actor: { code: "idle_timeout" },
    });
    const idle = await live(2, { idleTimeoutSecs: 60n }, true);
    expect(idle).toMatchObject({ row: { limit: 120 }, actor: { code: "idle_timeout" } });
  });

  test("is the one of the moment when the start was admitted, also of a later start", async () => {
    const caller = await limited({ max_uptime_minutes_per_sandbox: 5 });
    const { id } = await create(caller);
    await change.startSandbox(bench.ctx, caller, { id });
    await setLimits(bench.database, caller.orgId, { max_uptime_minutes_per_sandbox: 1 });
    await report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
    expect(await run(id)).toEqual([{ uptime: 300, limit: 300, due: 300 }]);
  });

  test("of 0 lets nothing start", async () => {
    const caller = await limited({ max_uptime_minutes_per_sandbox: 0 });
    expect(await outcome(create(caller, {}, true))).toBe("max_uptime_minutes_per_sandbox 0 0 1");
    const { id } = await create(caller);
    expect(await outcome(change.startSandbox(bench.ctx, caller, { id }))).toBe(
      "max_uptime_minutes_per_sandbox 0 0 1",
    );
  });
});
