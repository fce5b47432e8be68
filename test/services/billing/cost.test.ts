import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../../../runtime/caller.ts";
import { amountCents, halfUp } from "../../../services/billing/domain/cost.ts";
import { divided, GIB, inUnits, UNIT } from "../../../services/billing/domain/metrics.ts";
import {
  as,
  type BillingBench,
  createBillingBench,
  ended,
  insertRuns,
  measured,
} from "./support.ts";

let bench: BillingBench;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());

const PRICES = {
  vcpuHour: 5_000_000n,
  memoryGibHour: 1_600_000n,
  diskGibHour: 11_000n,
  storageGibHour: 27_000n,
};

/** An organization on a plan of its own that ran one vCPU and one GiB from April 20th to May 11th, 2026. */
async function payer(name: string, limits: Record<string, number> = {}): Promise<Caller> {
  const caller = await bench.organization();
  await bench.client.setPlan({ plan: { name, currency: "EUR", prices: PRICES, limits } });
  await bench.client.assignPlan({ plan: name }, as(caller));
  await insertRuns(bench.database, [
    {
      orgId: caller.orgId,
      memoryMib: 1024,
      diskSizeMib: 10_240,
      runningAt: "2026-04-20T00:00:00Z",
      machineEndedAt: "2026-05-11T00:00:00Z",
    },
  ]);
  return caller;
}

const timestamp = (text: string) => ({ seconds: BigInt(Date.parse(text) / 1_000), nanos: 0 });
const usage = (caller: Caller, since?: string, until?: string) =>
  bench.client.getUsage(
    {
      window: {
        ...(since && { since: timestamp(since) }),
        ...(until && { until: timestamp(until) }),
      },
    },
    as(caller),
  );
const amounts = async (...args: Parameters<typeof usage>) =>
  (await usage(...args)).lines.map((line) => Number(line.amountCents));

describe("prices", () => {
  test("each line is rounded once, half up", () => {
    const hour = { vcpu: 1_000_000n, memory: 0n, disk: 0n, storage: 0n };
    expect(amountCents("vcpu", UNIT.vcpu / 2n, hour)).toBe(1n);
    expect(amountCents("vcpu", UNIT.vcpu / 2n - 1n, hour)).toBe(0n);
    expect(amountCents("vcpu", (UNIT.vcpu * 3n) / 2n, hour)).toBe(2n);
    expect(halfUp(7n, 2n)).toBe(4n);
  });

  test("no quantity is too large to be exact", () => {
    const prices = { vcpu: 1_000_000_000_000n, memory: 0n, disk: 0n, storage: 0n };
    expect(amountCents("vcpu", 10n ** 30n * UNIT.vcpu, prices)).toBe(10n ** 36n);
    expect(inUnits("vcpu", 2n ** 70n * UNIT.vcpu)).toBe(2 ** 70);
    expect(divided(9_007_199_254_740_991n * 1_000n, 1_000n)).toBe(9_007_199_254_740_991);
  });

  test("without pools all of it is charged", async () => {
    const caller = await payer("by-use");
    const answer = await usage(caller, "2026-04-20T00:00:00Z", "2026-04-21T00:00:00Z");
    // 24 hours at 5 and at 1.6 cents; 240 GiB hours at 0.011 cents.
    expect(answer.lines.map(({ amountCents }) => amountCents)).toEqual([120n, 38n, 3n, 0n]);
    expect([answer.totalCents, answer.currency]).toEqual([161n, "EUR"]);
  });

  test("a pool is used up in the order of time, and every month has one", async () => {
    const caller = await payer("with-pools", {
      includedVcpuHours: 100,
      includedMemoryGibHours: 10_000,
    });
    // April has 264 hours, of which 100 are included; May 240.
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"))[0]).toBe(820);
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-06-01T00:00:00Z"))[0]).toBe(
      820 + 700,
    );
    // The first four days and a bit are free; a window that begins behind them is charged wholly.
    expect((await amounts(caller, "2026-04-20T00:00:00Z", "2026-04-24T04:00:00Z"))[0]).toBe(0);
    expect((await amounts(caller, "2026-04-24T04:00:00Z", "2026-04-24T05:00:00Z"))[0]).toBe(5);
    expect((await amounts(caller, "2026-04-24T00:00:00Z", "2026-04-24T05:00:00Z"))[0]).toBe(5);
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-06-01T00:00:00Z"))[1]).toBe(0);
  });

  test("an override without a limit includes everything", async () => {
    const caller = await payer("all-included", { includedVcpuHours: 1 });
    await bench.client.setOverrides({ set: [{ limit: "included_vcpu_hours" }] }, as(caller));
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"))[0]).toBe(0);
    await bench.client.setOverrides({ clear: ["included_vcpu_hours"] }, as(caller));
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"))[0]).toBe(
      263 * 5,
    );
  });

  test("a GiB of storage is included for the whole month", async () => {
    const caller = await payer("with-storage", { includedStorageGib: 2 });
    const volume = { orgId: caller.orgId, volumeId: randomUUID(), bytes: 5n * GIB };
    await measured(bench.database, { ...volume, at: "2026-04-01T00:00:00Z" });
    await ended(bench.database, volume.volumeId, "2026-05-01T00:00:00Z");
    // 3 GiB for the 720 hours of April at 0.027 cents.
    expect((await amounts(caller, "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z"))[3]).toBe(58);
  });
});

describe("projected spending", () => {
  test("extrapolates the default window to the month's end, and an explicit until that is not over", async () => {
    const caller = await payer("projected");
    bench.setNow("2026-04-21T00:00:00Z");
    expect(await usage(caller)).toMatchObject({ totalCents: 161n, projectedSpendCents: 242n });
    const future = await usage(caller, "2026-04-20T00:00:00Z", "2026-04-30T00:00:00Z");
    expect(future).toMatchObject({ totalCents: 161n, projectedSpendCents: 1_610n });
    bench.setNow(undefined);
  });

  test("is the total where the window is over, or has not begun", async () => {
    const caller = await payer("not-projected");
    bench.setNow("2026-05-21T00:00:00Z");
    const past = await usage(caller, "2026-04-20T00:00:00Z", "2026-04-21T00:00:00Z");
    expect(past).toMatchObject({ totalCents: 161n, projectedSpendCents: 161n });
    const future = await usage(caller, "2026-06-20T00:00:00Z", "2026-06-21T00:00:00Z");
    expect(future).toMatchObject({ totalCents: 0n, projectedSpendCents: 0n });
    bench.setNow(undefined);
  });
});
