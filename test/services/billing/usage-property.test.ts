import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { byMonth, charged } from "../../../services/billing/domain/cost.ts";
import { getUsage } from "../../../services/billing/domain/get-usage.ts";
import { listSandboxUsage } from "../../../services/billing/domain/list-usage.ts";
import { addUse, METRICS, NO_USE, type Use } from "../../../services/billing/domain/metrics.ts";
import { type BillingBench, createBillingBench, insertRuns, type TestRun } from "./support.ts";

// Random lives over random windows, some of them rolled up, some not yet and some while they are asked for, beside a
// reference that knows neither days nor SQL: it cuts intervals.

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FROM = Date.parse("2027-12-20T00:00:00Z");
const DAYS = 80;

interface Life {
  vcpus: number;
  memoryMib: number;
  diskSizeMib: number | null;
  /** Microseconds since 1970; the rest relative to what is before it. */
  admitted: number;
  running: number | null;
  stop: number | null;
  ended: number | null;
}

/** Microseconds: near a midnight more often than chance would have it. */
const instant = fc
  .oneof(
    fc.integer({ min: 0, max: DAYS * DAY * 1_000 }),
    fc
      .tuple(fc.integer({ min: 1, max: DAYS - 1 }), fc.integer({ min: -2_000, max: 2_000 }))
      .map(([day, off]) => day * DAY * 1_000 + off),
  )
  .map((us) => FROM * 1_000 + us);
const length = fc.oneof(
  fc.integer({ min: 0, max: 3_000 }),
  fc.integer({ min: 0, max: 3 * DAY * 1_000 }),
  fc.integer({ min: 0, max: 40 * DAY * 1_000 }),
);

const life: fc.Arbitrary<Life> = fc
  .record({
    vcpus: fc.integer({ min: 1, max: 64 }),
    memoryMib: fc.integer({ min: 1, max: 1 << 20 }),
    diskSizeMib: fc.option(fc.integer({ min: 0, max: 1 << 22 })),
    admitted: instant,
    toRunning: fc.option(length, { freq: 6 }),
    toStop: fc.option(length),
    toEnd: fc.option(length, { freq: 6 }),
  })
  .map(({ toRunning, toStop, toEnd, admitted, ...rest }) => {
    const running = toRunning === null ? null : admitted + toRunning;
    // A stop may be admitted before the machine is up.
    const stop = toStop === null ? null : admitted + toStop;
    const ended = toEnd === null ? null : Math.max(running ?? 0, admitted) + toEnd;
    return { ...rest, admitted, running, stop, ended };
  });

const rfc = (us: number) => {
  const ms = Math.floor(us / 1_000);
  const rest = String(us - ms * 1_000).padStart(3, "0");
  return new Date(ms).toISOString().replace("Z", `${rest}Z`);
};
const maybe = (us: number | null) => (us === null ? null : rfc(us));

function toRun(orgId: string, { admitted, running, stop, ended, ...size }: Life): TestRun {
  return {
    orgId,
    ...size,
    sandboxId: randomUUID(),
    admittedAt: rfc(admitted),
    runningAt: maybe(running),
    stopAdmittedAt: maybe(stop),
    machineEndedAt: maybe(ended),
  };
}

/** What a life is billed in [since, until), milliseconds. */
function reference(lives: readonly Life[], since: number, until: number, now: number): Use {
  return lives.reduce((sum, { running, stop, ended, ...size }) => {
    if (running === null) return sum;
    const ends = [stop, ended].filter((us) => us !== null).map((us) => Math.floor(us / 1_000));
    const from = Math.max(Math.floor(running / 1_000), since);
    const to = Math.min(...(ends.length > 0 ? ends : [now]), until, now);
    const ms = BigInt(Math.max(0, to - from));
    return addUse(sum, {
      vcpu: BigInt(size.vcpus) * ms,
      memory: BigInt(size.memoryMib) * ms,
      disk: BigInt(size.diskSizeMib ?? 0) * ms,
      storage: 0n,
    });
  }, NO_USE);
}

let bench: BillingBench;
beforeAll(async () => {
  bench = await createBillingBench();
});
afterAll(() => bench.close());

const usedIn = async (orgId: string, since: number, until: number) => {
  const { lines } = await getUsage(bench.ctx, { orgId }, { since, until });
  return Object.fromEntries(lines.map(({ metric, quantity }) => [metric, quantity]));
};

test("random lives over random windows: exact, whatever is rolled up; days, sandboxes and adjoining windows add up", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(life, { minLength: 1, maxLength: 25 }),
      fc.nat(25),
      fc.array(instant, { minLength: 3, maxLength: 3 }),
      instant,
      fc.boolean(),
      async (lives, early, instants, nowUs, meanwhile) => {
        const { orgId } = await bench.organization();
        const runs = lives.map((each) => toRun(orgId, each));
        await insertRuns(bench.database, runs.slice(0, early));
        await bench.meter();
        await insertRuns(bench.database, runs.slice(early));
        const now = Math.floor(nowUs / 1_000);
        bench.setNow(new Date(now).toISOString());
        const [a = 0, b = 0, c = 0] = instants
          .map((us) => Math.floor(us / 1_000))
          .sort((x, y) => x - y);

        const metering = meanwhile ? bench.meter() : undefined;
        const [whole, first, second, sandboxes, usage] = await Promise.all([
          usedIn(orgId, a, c),
          usedIn(orgId, a, b),
          usedIn(orgId, b, c),
          listSandboxUsage(bench.ctx, { orgId }, { since: a, until: c }),
          getUsage(bench.ctx, { orgId }, { since: a, until: c }),
        ]);
        await metering;

        const expected = reference(lives, a, c, now);
        expect(whole).toEqual(expected);
        for (const metric of METRICS)
          expect((first[metric] ?? 0n) + (second[metric] ?? 0n)).toBe(expected[metric]);
        for (const { day, use } of usage.days) {
          const from = Math.max(day * DAY, a);
          expect(use).toEqual(reference(lives, from, Math.min((day + 1) * DAY, c), now));
        }
        expect(usage.days.reduce((sum, { use }) => addUse(sum, use), NO_USE)).toEqual(expected);
        for (const metric of ["vcpu", "memory", "disk"] as const)
          expect(sandboxes.reduce((sum, row) => sum + row[metric], 0n)).toBe(expected[metric]);
        for (const [i, { sandboxId }] of runs.entries()) {
          const rows = sandboxes.filter((row) => row.sandboxId === sandboxId);
          const one = reference(lives.slice(i, i + 1), a, c, now);
          expect(rows.reduce((sum, row) => sum + row.vcpu, 0n)).toBe(one.vcpu);
        }
        // Nothing is left to one side when all is rolled up.
        await bench.meter();
        expect(await usedIn(orgId, a, c)).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
}, 120_000);

test("adjoining windows are charged what the whole is, pools and months in between", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(life, { minLength: 1, maxLength: 12 }),
      fc.array(instant, { minLength: 3, maxLength: 3 }),
      fc.nat(400),
      async (lives, instants, included) => {
        const { orgId } = await bench.organization();
        await insertRuns(
          bench.database,
          lives.map((each) => toRun(orgId, each)),
        );
        bench.setNow(new Date(FROM + DAYS * DAY).toISOString());
        const now = FROM + DAYS * DAY;
        const [a = 0, b = 0, c = 0] = instants
          .map((us) => Math.floor(us / 1_000))
          .sort((x, y) => x - y);
        const chargedIn = async (since: number, until: number) => {
          const date = new Date(since);
          const month = Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
          const parts = { before: { since: month, until: since }, within: { since, until } };
          const months = byMonth(await bench.ctx.store.sumRuns(orgId, now, parts));
          return charged("vcpu", months, { included_vcpu_hours: included });
        };
        const [whole, first, second] = [
          await chargedIn(a, c),
          await chargedIn(a, b),
          await chargedIn(b, c),
        ];
        expect(first + second).toBe(whole);
      },
    ),
    { numRuns: 40 },
  );
}, 120_000);
