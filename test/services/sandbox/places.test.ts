import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { report } from "../../../services/sandbox/domain/report.ts";
import { PLACES_SQL, type PlacesRow, wrongPlaces } from "../../support/places.ts";
import {
  type Bench,
  createBench,
  createInput,
  newCaller,
  setEngine,
  setLimits,
} from "./support.ts";

let bench: Bench;

beforeAll(async () => {
  bench = await createBench();
  await setEngine(bench.database);
});
afterEach(async () => {
  expect(wrongPlaces(await bench.database.query<PlacesRow>(PLACES_SQL))).toEqual([]);
});
afterAll(() => bench.close());

const kind = (ephemeral: boolean) => ({ lifecycle: { ephemeral } });
const started = (ephemeral: boolean) => createInput(kind(ephemeral), { start: true });

async function places({ orgId }: Caller) {
  const rows = await bench.database.query<PlacesRow>(PLACES_SQL);
  return rows.find((row) => row.orgId === orgId)?.kept ?? "0/0/0";
}

/** All at once; every refusal is the same one. */
async function race(acts: readonly (() => Promise<unknown>)[]) {
  const done = await Promise.allSettled(acts.map((act) => act()));
  const refused = done.filter((result) => result.status === "rejected");
  const told = new Set(
    refused.map(({ reason }) =>
      reason instanceof ServiceError
        ? JSON.stringify([reason.reason, reason.metadata])
        : String(reason),
    ),
  );
  return { done: done.length - refused.length, told: [...told].map((each) => JSON.parse(each)) };
}

const times = <T>(n: number, make: (i: number) => T) =>
  Array.from({ length: n }, (_, i) => make(i));

describe.each([0, 1, 7])("with %i places, and 50 more who want one at once", (n) => {
  test("so many sandboxes are made", async () => {
    const caller = newCaller();
    await setLimits(bench.database, caller.orgId, { max_sandboxes: n });
    const made = await race(
      times(n + 50, () => () => createSandbox(bench.ctx, caller, createInput())),
    );
    const metadata = { quota: "max_sandboxes", limit: `${n}`, used: `${n}`, requested: "1" };
    expect(made).toEqual({ done: n, told: [["QUOTA_EXCEEDED", metadata]] });
    expect(await places(caller)).toBe(`${n}/0/0`);
  });

  test.each([true, false])("so many are made and started, ephemeral %s", async (ephemeral) => {
    const caller = newCaller();
    const quota = `max_concurrent_${ephemeral ? "ephemeral" : "persistent"}_running`;
    await setLimits(bench.database, caller.orgId, { [quota]: n });
    const made = await race(
      times(n + 50, () => () => createSandbox(bench.ctx, caller, started(ephemeral))),
    );
    const metadata = { quota, limit: `${n}`, used: `${n}`, requested: "1" };
    expect(made).toEqual({ done: n, told: [["QUOTA_EXCEEDED", metadata]] });
    expect(await places(caller)).toBe(ephemeral ? `${n}/${n}/0` : `${n}/0/${n}`);
  });

  test("so many of those that are there are started", async () => {
    const caller = newCaller();
    const quota = "max_concurrent_persistent_running";
    await setLimits(bench.database, caller.orgId, { [quota]: n });
    const made = await Promise.all(
      times(n + 50, () => createSandbox(bench.ctx, caller, createInput())),
    );
    const up = await race(
      made.map(
        ({ id }) =>
          () =>
            change.startSandbox(bench.ctx, caller, { id }),
      ),
    );
    const metadata = { quota, limit: `${n}`, used: `${n}`, requested: "1" };
    expect(up).toEqual({ done: n, told: [["QUOTA_EXCEEDED", metadata]] });
    expect(await places(caller)).toBe(`${n + 50}/0/${n}`);
  });
});

test("ephemeral and persistent sandboxes have places of their own, and so has every organization", async () => {
  const [one, other] = [newCaller(), newCaller()];
  const limits = { max_concurrent_ephemeral_running: 2, max_concurrent_persistent_running: 3 };
  await setLimits(bench.database, one.orgId, limits);
  const made = await Promise.all(
    [one, other].flatMap((caller) =>
      [true, false].map((ephemeral) =>
        race(times(10, () => () => createSandbox(bench.ctx, caller, started(ephemeral)))),
      ),
    ),
  );
  expect(made.map(({ done }) => done)).toEqual([2, 3, 10, 10]);
  expect([await places(one), await places(other)]).toEqual(["5/2/3", "20/10/10"]);
});

describe.each([true, false])("the one place to run, ephemeral %s", (ephemeral) => {
  const taken = ephemeral ? "1/1/0" : "1/0/1";
  async function holder() {
    const caller = newCaller();
    await setLimits(bench.database, caller.orgId, {
      max_concurrent_ephemeral_running: 1,
      max_concurrent_persistent_running: 1,
    });
    const { id } = await createSandbox(bench.ctx, caller, started(ephemeral));
    await expect(createSandbox(bench.ctx, caller, started(ephemeral))).rejects.toMatchObject({
      reason: "QUOTA_EXCEEDED",
    });
    expect(await places(caller)).toBe(taken);
    return { caller, id };
  }
  const up = (id: string) => report(bench.ctx, id, 1, { kind: "running", startedAt: new Date() });
  const end = (
    id: string,
    cause: "crashed" | "lost" | "limit_reached" | "stopped" | "start_failed",
  ) => report(bench.ctx, id, 1, { kind: "ended", endedAt: null, cause, message: "" });

  test.each(["starting", "running"])(
    "is free once a stop is admitted while it is %s",
    async (state) => {
      const { caller, id } = await holder();
      if (state === "running") await up(id);
      await change.stopSandbox(bench.ctx, caller, { id });
      expect(await places(caller)).toBe("1/0/0");
      await createSandbox(bench.ctx, caller, started(ephemeral));
      // What comes behind the stop does not give it back again.
      await up(id);
      expect(await end(id, "stopped")).toBe(true);
      expect(await places(caller)).toBe(ephemeral ? "2/1/0" : "2/0/1");
      await change.destroySandbox(bench.ctx, caller, { id });
      expect(await places(caller)).toBe(taken);
    },
  );

  test.each(["starting", "running", "stopping"])(
    "is free once a destroy is admitted while it is %s",
    async (state) => {
      const { caller, id } = await holder();
      if (state !== "starting") await up(id);
      if (state === "stopping") await change.stopSandbox(bench.ctx, caller, { id });
      await change.destroySandbox(bench.ctx, caller, { id });
      expect(await places(caller)).toBe("0/0/0");
      await createSandbox(bench.ctx, caller, started(ephemeral));
      await up(id);
      expect(await end(id, "stopped")).toBe(true);
      expect(await report(bench.ctx, id, 1, { kind: "removed" })).toBe(true);
      expect(await places(caller)).toBe(taken);
    },
  );

  test.each([
    ["a machine crashed", "crashed"],
    ["a machine is lost", "lost"],
    ["a limit is reached", "limit_reached"],
    ["the machine never came up", "start_failed"],
  ] as const)("is free once %s", async (_, cause) => {
    const { caller, id } = await holder();
    if (cause !== "start_failed") await up(id);
    expect([await end(id, cause), await end(id, cause)]).toEqual([true, false]);
    expect(await places(caller)).toBe("1/0/0");
    await change.destroySandbox(bench.ctx, caller, { id });
    expect(await places(caller)).toBe("0/0/0");
  });

  test("is not free for a report of another generation, or of a leader that was replaced", async () => {
    const { caller, id } = await holder();
    const ended = { kind: "ended", endedAt: null, cause: "crashed", message: "" } as const;
    expect(await report(bench.ctx, id, 2, ended)).toBe(false);
    expect(await report(bench.ctx, id, 1, ended, { engine: "test", epoch: 99n })).toBe(false);
    expect(await places(caller)).toBe(taken);
  });
});

test("limits that were lowered below use refuse what is more, and nothing else", async () => {
  const caller = newCaller();
  const [a, b] = await Promise.all(
    times(3, () => createSandbox(bench.ctx, caller, started(false))),
  );
  await setLimits(bench.database, caller.orgId, {
    max_sandboxes: 1,
    max_concurrent_persistent_running: 1,
  });
  await change.stopSandbox(bench.ctx, caller, { id: a?.id ?? "" });
  await change.destroySandbox(bench.ctx, caller, { id: b?.id ?? "" });
  expect(await places(caller)).toBe("2/0/1");
  await expect(createSandbox(bench.ctx, caller, createInput())).rejects.toMatchObject({
    metadata: { quota: "max_sandboxes", limit: "1", used: "2", requested: "1" },
  });
  await change.renameSandbox(bench.ctx, caller, { id: a?.id ?? "" }, { name: "x", slug: null });
});

test("a refused or failed create takes no place", async () => {
  const caller = newCaller();
  await createSandbox(bench.ctx, caller, createInput({}, { name: "mine" }));
  const again = createInput({}, { name: "mine", start: true });
  await expect(createSandbox(bench.ctx, caller, again)).rejects.toMatchObject({
    reason: "NAME_ALREADY_EXISTS",
  });
  await setEngine(bench.database, { alive: false });
  await expect(createSandbox(bench.ctx, caller, started(true))).rejects.toMatchObject({
    reason: "ORCHESTRATOR_UNREACHABLE",
  });
  await setEngine(bench.database);
  expect(await places(caller)).toBe("1/0/0");
});
