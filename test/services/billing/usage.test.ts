import { randomUUID } from "node:crypto";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import {
  as,
  type BillingBench,
  createBillingBench,
  insertRuns,
  insertSandbox,
  refusalOf,
  type TestRun,
} from "./support.ts";

let bench: BillingBench;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());
afterEach(() => bench.setNow(undefined));

const at = (text: string) => timestampFromDate(new Date(text));
const window = (since?: string, until?: string) => ({
  ...(since && { since: at(since) }),
  ...(until && { until: at(until) }),
});
const iso = (stamp: Parameters<typeof timestampDate>[0] | undefined) =>
  stamp && timestampDate(stamp).toISOString();

/** An organization with these runs, rolled up or not. */
async function having(runs: Omit<TestRun, "orgId">[], metered: boolean): Promise<Caller> {
  const caller = await bench.organization();
  await insertRuns(
    bench.database,
    runs.map((run) => ({ ...run, orgId: caller.orgId })),
  );
  if (metered) await bench.meter();
  return caller;
}

const usage = (caller: Caller, since?: string, until?: string) =>
  bench.client.getUsage({ window: window(since, until) }, as(caller));
const dailyOf = async (...args: Parameters<typeof usage>) => {
  const { daily } = await usage(...args);
  return daily.map(({ date, metric, quantity }) => [iso(date)?.slice(0, 10), metric, quantity]);
};

describe.each([
  ["rolled up", true],
  ["not rolled up", false],
])("closed runs that are %s", (_, metered) => {
  test("are split at UTC midnight, to the millisecond", async () => {
    const caller = await having(
      [
        {
          vcpus: 2,
          memoryMib: 1024,
          diskSizeMib: 2048,
          runningAt: "2026-03-31T23:00:00.0009Z",
          machineEndedAt: "2026-04-01T02:00:00.001Z",
        },
      ],
      metered,
    );
    expect(await dailyOf(caller, "2026-03-01T00:00:00Z", "2026-05-01T00:00:00Z")).toEqual([
      ["2026-03-31", "vcpu", 2],
      ["2026-03-31", "memory", 1],
      ["2026-03-31", "disk", 2],
      ["2026-04-01", "vcpu", 4 + 2 / 3_600_000],
      ["2026-04-01", "memory", 2 + 1 / 3_600_000],
      ["2026-04-01", "disk", 4 + 2 / 3_600_000],
    ]);
    const { rows } = await bench.client.listSandboxUsage(
      { window: window("2026-03-31T00:00:00Z", "2026-04-01T00:00:00.5Z") },
      as(caller),
    );
    expect(rows.map(({ vcpuSeconds, memMibSeconds }) => [vcpuSeconds, memMibSeconds])).toEqual([
      [7200, 3600 * 1024],
      [1, 512],
    ]);
  });

  test("that stop exactly at midnight have no part in the next day", async () => {
    const caller = await having(
      [{ runningAt: "2026-04-01T00:00:00Z", machineEndedAt: "2026-04-02T00:00:00Z" }],
      metered,
    );
    expect(await dailyOf(caller, "2026-03-20T00:00:00Z", "2026-04-20T00:00:00Z")).toEqual([
      ["2026-04-01", "vcpu", 24],
      ["2026-04-01", "memory", 12],
    ]);
  });

  test("know the leap day", async () => {
    const caller = await having(
      [{ runningAt: "2028-02-28T12:00:00Z", machineEndedAt: "2028-03-01T12:00:00Z" }],
      metered,
    );
    bench.setNow("2028-03-10T00:00:00Z");
    const days = await dailyOf(caller, "2028-02-28T18:00:00Z", "2028-03-01T06:00:00Z");
    expect(days.filter(([, metric]) => metric === "vcpu")).toEqual([
      ["2028-02-28", "vcpu", 6],
      ["2028-02-29", "vcpu", 24],
      ["2028-03-01", "vcpu", 6],
    ]);
  });

  test("are billed to the admitted stop or the machine's end, whichever is first; what never ran, not at all", async () => {
    const caller = await having(
      [
        {
          runningAt: "2026-04-01T00:00:00Z",
          stopAdmittedAt: "2026-04-01T01:00:00Z",
          machineEndedAt: "2026-04-01T09:00:00Z",
        },
        {
          runningAt: "2026-04-01T00:00:00Z",
          stopAdmittedAt: "2026-04-01T08:00:00Z",
          machineEndedAt: "2026-04-01T02:00:00Z",
          closedAt: "2026-04-01T09:00:00Z",
        },
        // Up only after its stop was admitted.
        {
          admittedAt: "2026-04-01T00:00:00Z",
          stopAdmittedAt: "2026-04-01T01:00:00Z",
          runningAt: "2026-04-01T02:00:00Z",
          machineEndedAt: "2026-04-01T03:00:00Z",
        },
        { admittedAt: "2026-04-01T00:00:00Z", machineEndedAt: "2026-04-01T09:00:00Z" },
      ],
      metered,
    );
    expect(await dailyOf(caller, "2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z")).toEqual([
      ["2026-04-01", "vcpu", 3],
      ["2026-04-01", "memory", 1.5],
    ]);
  });

  test("of destroyed and removed sandboxes keep their rows and leave the directory", async () => {
    const [lives, destroyed, removed] = [randomUUID(), randomUUID(), randomUUID()];
    const hour = { runningAt: "2026-04-01T00:00:00Z", machineEndedAt: "2026-04-01T01:00:00Z" };
    const caller = await having(
      [lives, destroyed, removed].map((sandboxId) => ({ ...hour, sandboxId })),
      metered,
    );
    const { orgId } = caller;
    await insertSandbox(bench.database, { id: lives, orgId, name: `lives-${metered}` });
    await insertSandbox(bench.database, {
      id: destroyed,
      orgId,
      name: `destroyed-${metered}`,
      destroyed: true,
    });
    const answer = await bench.client.listSandboxUsage(
      { window: window("2026-04-01T00:00:00Z", "2026-04-02T00:00:00Z") },
      as(caller),
    );
    expect(answer.rows.map(({ sandboxId }) => sandboxId).sort()).toEqual(
      [lives, destroyed, removed].sort(),
    );
    expect(answer.rows.map(({ vcpuSeconds }) => vcpuSeconds)).toEqual([3600, 3600, 3600]);
    expect(answer.sandboxes).toMatchObject([
      { id: lives, name: `lives-${metered}`, slug: `lives-${metered}` },
    ]);
    expect(answer.sandboxes).toHaveLength(1);
  });
});

test("open runs count up to now, also where until is in the future, which is echoed", async () => {
  const caller = await having(
    [
      { runningAt: "2026-04-09T22:00:00Z" },
      // Its stop is admitted, so it costs nothing more.
      { runningAt: "2026-04-09T22:00:00Z", stopAdmittedAt: "2026-04-09T23:00:00Z" },
      { admittedAt: "2026-04-09T22:00:00Z" },
    ],
    false,
  );
  bench.setNow("2026-04-10T03:00:00Z");
  const until = "2026-04-30T00:00:00Z";
  expect((await dailyOf(caller, undefined, until)).filter(([, m]) => m === "vcpu")).toEqual([
    ["2026-04-09", "vcpu", 3],
    ["2026-04-10", "vcpu", 3],
  ]);
  const answer = await usage(caller, undefined, until);
  expect([iso(answer.periodStart), iso(answer.periodEnd)]).toEqual([
    "2026-04-01T00:00:00.000Z",
    "2026-04-30T00:00:00.000Z",
  ]);
});

test("the ends of a window are told as they were given", async () => {
  const since = { seconds: 1_775_001_600n, nanos: 123_456_789 };
  const until = { seconds: 1_775_001_600n, nanos: 123_999_999 };
  const answer = await bench.client.getUsage(
    { window: { since, until } },
    as(await bench.organization()),
  );
  expect(answer).toMatchObject({ periodStart: since, periodEnd: until });
});

test("an organization sees its own use alone", async () => {
  await having(
    [{ runningAt: "2026-04-01T00:00:00Z", machineEndedAt: "2026-04-02T00:00:00Z" }],
    true,
  );
  const other = await bench.organization();
  expect((await usage(other, "2026-04-01T00:00:00Z", "2026-04-03T00:00:00Z")).daily).toEqual([]);
  expect(await refusalOf(usage({ ...other, orgId: randomUUID() }))).toMatchObject({
    reason: "ORG_NOT_FOUND",
  });
});

describe("windows", () => {
  test("the default is this month up to now", async () => {
    bench.setNow("2026-04-10T03:00:00.123Z");
    const answer = await usage(await bench.organization());
    expect([iso(answer.periodStart), iso(answer.periodEnd)]).toEqual([
      "2026-04-01T00:00:00.000Z",
      "2026-04-10T03:00:00.123Z",
    ]);
    expect(
      answer.lines.map(({ name, unit, quantity, amountCents }) => [
        name,
        unit,
        quantity,
        amountCents,
      ]),
    ).toEqual([
      ["vcpu", "vcpu_hours", 0, 0n],
      ["memory", "gib_hours", 0, 0n],
      ["disk", "gib_hours", 0, 0n],
      ["storage", "gib_hours", 0, 0n],
    ]);
    expect(answer.storageGib).toBeUndefined();
  });

  test.each([
    ["since after until", "2026-04-02T00:00:00Z", "2026-04-01T00:00:00Z", ["since"]],
    ["93 days", "2026-01-01T00:00:00Z", "2026-04-04T00:00:00Z", ["since"]],
    [
      "a millisecond more than 92 days",
      "2026-01-01T00:00:00Z",
      "2026-04-03T00:00:00.001Z",
      ["since"],
    ],
    ["since long ago", "2020-01-01T00:00:00Z", undefined, ["since"]],
    ["until far away", undefined, "2096-01-01T00:00:00Z", ["until"]],
  ])("%s is refused", async (_, since, until, fields) => {
    const caller = await bench.organization();
    const refused = { reason: "INVALID_REQUEST", fields };
    expect(await refusalOf(usage(caller, since, until))).toEqual(refused);
    const request = { window: window(since, until) };
    expect(await refusalOf(bench.client.listSandboxUsage(request, as(caller)))).toEqual(refused);
    expect(await refusalOf(bench.client.listStorageUsage(request, as(caller)))).toEqual(refused);
  });

  test("instants that no calendar has are refused", async () => {
    const since = { seconds: 10n ** 15n, nanos: 0 };
    const call = bench.client.getUsage({ window: { since } }, as(await bench.organization()));
    expect(await refusalOf(call)).toEqual({ reason: "INVALID_REQUEST", fields: ["since"] });
  });

  test("92 days, a month, an instant and the future are windows", async () => {
    const caller = await having([{ runningAt: "2026-01-01T00:00:00Z" }], false);
    bench.setNow("2026-06-01T00:00:00Z");
    const vcpu = async (since?: string, until?: string) =>
      (await usage(caller, since, until)).lines[0]?.quantity;
    expect(await vcpu("2026-01-01T00:00:00Z", "2026-04-03T00:00:00Z")).toBe(92 * 24);
    expect(await vcpu("2026-02-01T00:00:00Z", "2026-02-01T00:00:00Z")).toBe(0);
    // Without since: the month of until.
    expect(await vcpu(undefined, "2026-02-11T00:00:00Z")).toBe(10 * 24);
    expect(await vcpu("2026-07-01T00:00:00Z", "2026-07-02T00:00:00Z")).toBe(0);
    expect(await vcpu("2026-07-01T00:00:00Z")).toBe(0);
  });
});
