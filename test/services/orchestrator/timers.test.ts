import { afterEach, expect, test } from "vitest";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import type { Status } from "../../../services/sandbox/domain/sandbox.ts";
import { startHousekeeping } from "../../../services/sandbox/housekeeping.ts";
import { createSystem, type System } from "./support.ts";

let system: System;
afterEach(() => system.close());

const patient = { timeout: 15_000 };
async function reaches(id: string, status: Status) {
  await expect.poll(async () => (await system.get(id)).status, patient).toBe(status);
  return system.get(id);
}

/** How a run ended: how late against `since` plus its limit, and by whom. */
async function endOf(id: string, since: string, limitSecs: number) {
  const [row] = await system.database.query<{ late: number; code: string }>(
    `SELECT extract(epoch FROM machine_ended_at - ${since})::float8 - $2::int AS late,
            (SELECT actor->>'code' FROM organization.events
             WHERE payload->>'sandbox_id' = sandbox_id::text AND event_type IN ('sandbox_stopped', 'sandbox_failed')) AS code
     FROM sandbox.runs WHERE sandbox_id = $1::uuid`,
    id,
    limitSecs,
  );
  return row;
}
const exact = (late?: number) => {
  expect(late).toBeGreaterThanOrEqual(-0.002);
  expect(late).toBeLessThan(1);
};
const dueOf = (id: string) =>
  system.database.query<{ due: Date }>(
    "SELECT due_at AS due FROM sandbox.runs WHERE sandbox_id = $1::uuid",
    id,
  );

test("the longest duration counts from running, to the second, and the audit says so", async () => {
  system = await createSystem();
  const lifecycle = { maxDurationSecs: 2n, idleTimeoutSecs: 600n };
  const { id } = await system.create({ lifecycle });
  expect(await reaches(id, "stopped")).toMatchObject({ lastFailureMessage: null });
  const end = await endOf(id, "running_at", 2);
  expect(end?.code).toBe("max_duration");
  exact(end?.late);
});

test("without a workload the idle time-out counts from running", async () => {
  system = await createSystem();
  const { id } = await system.create({
    lifecycle: { maxDurationSecs: 600n, idleTimeoutSecs: 2n },
    runtime: { entrypoint: { values: [] } },
  });
  await reaches(id, "stopped");
  const end = await endOf(id, "running_at", 2);
  expect(end?.code).toBe("idle_timeout");
  exact(end?.late);
});

test("with a workload it counts from the workload's end, once, and no read moves it", async () => {
  system = await createSystem();
  const { id } = await system.create({
    lifecycle: { idleTimeoutSecs: 3n },
    runtime: { cmd: { values: ["work"] } },
  });
  await reaches(id, "running");
  expect(await dueOf(id)).toEqual([{ due: null }]);
  system.engine.endWorkload(id);
  await expect.poll(() => dueOf(id)).not.toEqual([{ due: null }]);
  const due = await dueOf(id);
  system.engine.endWorkload(id);
  for (let i = 0; i < 5; i += 1) {
    await system.get(id);
    await system.ctx.store.list({
      orgId: system.caller.orgId,
      limit: 20,
      after: null,
      labels: null,
      statuses: null,
    });
  }
  await new Promise((go) => setTimeout(go, 300));
  expect(await dueOf(id)).toEqual(due);
  await reaches(id, "stopped");
  const end = await endOf(id, "workload_ended_at", 3);
  expect(end?.code).toBe("idle_timeout");
  exact(end?.late);
});

test("the longest duration holds though the workload ended, and the other way round", async () => {
  system = await createSystem();
  const runtime = { cmd: { values: ["work"] } };
  const lifecycle = { maxDurationSecs: 3n, idleTimeoutSecs: 600n };
  const { id } = await system.create({ lifecycle, runtime });
  await reaches(id, "running");
  const due = await dueOf(id);
  system.engine.endWorkload(id);
  await expect
    .poll(() => system.database.query("SELECT workload_ended_at FROM sandbox.runs"))
    .not.toEqual([{ workload_ended_at: null }]);
  expect(await dueOf(id)).toEqual(due);
  await reaches(id, "stopped");
  expect((await endOf(id, "running_at", 3))?.code).toBe("max_duration");
});

test("a limit survives a restart of the orchestrator", async () => {
  system = await createSystem();
  const { id } = await system.create({ lifecycle: { maxDurationSecs: 4n } });
  await reaches(id, "running");
  system.engine.close = async () => {};
  await system.stopFirst();
  await system.orchestrate(system.engine);
  await reaches(id, "stopped");
  exact((await endOf(id, "running_at", 4))?.late);
});

test("who ended a run: the engine, one that lost it, or a stop that was asked for", async () => {
  system = await createSystem();
  const { engine, ctx, caller } = system;
  const [crashed, lost, stopped] = await Promise.all([1, 2, 3].map(() => system.create()));
  if (!crashed || !lost || !stopped) throw new Error("three were made");
  for (const { id } of [crashed, lost, stopped]) await reaches(id, "running");
  engine.endMachine(crashed.id, { exitCode: 1 });
  await engine.remove(lost.id);
  await change.stopSandbox(ctx, caller, { id: stopped.id });
  await reaches(crashed.id, "failed");
  await reaches(lost.id, "failed");
  await reaches(stopped.id, "stopped");
  const codes = [crashed, lost, stopped].map(
    async ({ id }) => (await endOf(id, "running_at", 0))?.code,
  );
  expect(await Promise.all(codes)).toEqual(["engine", "engine_lost", "engine"]);
});

test("an ephemeral sandbox goes when its linger is over, to the second", async () => {
  system = await createSystem();
  system.ctx.lingerSecs = 2;
  const housekeeping = startHousekeeping(system.ctx, () => {});
  const { id } = await system.create({ lifecycle: { ephemeral: true, maxDurationSecs: 1n } });
  const destroyed = () =>
    system.database.query<{ late: number }>(
      `SELECT extract(epoch FROM timestamp - (SELECT closed_at FROM sandbox.runs WHERE sandbox_id = $1::uuid))::float8 - 2 AS late
       FROM organization.events WHERE event_type = 'sandbox_destroyed' AND payload->>'sandbox_id' = $1::uuid::text`,
      id,
    );
  await expect.poll(destroyed, patient).toHaveLength(1);
  const [row] = await destroyed();
  exact(row?.late);
  await housekeeping.stop();
});
