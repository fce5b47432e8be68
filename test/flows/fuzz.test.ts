import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fuzz } from "../fuzz/fuzz.ts";
import { SHAPES, startTarget, type Target } from "../fuzz/target.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

// `npm run fuzz` in short; FUZZ_SEED repeats a run.
const SEED = Number(process.env.FUZZ_SEED ?? 20261121);

describe.each(SHAPES)("requests of every kind, shape %s", (shape) => {
  let database: TestDatabase;
  let target: Target;

  beforeAll(async () => {
    database = await createTestDatabase();
    target = await startTarget(shape, database.url);
  }, 120_000);
  afterAll(async () => {
    await target.close();
    await database.close();
  });

  test(`are answered as /openapi.json says (seed ${SEED})`, async () => {
    const { findings, good } = await fuzz(target, { seed: SEED, runs: 1_200, workers: 4 });
    expect(findings).toEqual([]);
    const successes = [...good].filter(([, { done }]) => done > 0).map(([id]) => id);
    // Most requests that fit are about something that is there: this is no run of refusals.
    expect(successes.length).toBeGreaterThan(25);
  }, 300_000);
});
