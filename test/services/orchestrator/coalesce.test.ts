import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { coalesce } from "../../../services/orchestrator/coalesce.ts";

const LONG = 60_000;
const fail = (error: unknown) => expect.fail(String(error));

test("the first call runs at once; calls while it runs or rests become one more run", async () => {
  let runs = 0;
  const task = async () => {
    runs += 1;
    await turn();
  };
  const work = coalesce(task, fail, 20);
  for (let i = 0; i < 100; i++) work.call();
  expect(runs).toBe(1);
  await turn();
  await turn();
  for (let i = 0; i < 100; i++) work.call();
  expect(runs).toBe(1);
  await expect.poll(() => runs).toBe(2);
  await work.stop();
  expect(runs).toBe(2);
});

test("stop does not wait for a rest, and what was asked for in it is not run", async () => {
  let runs = 0;
  const work = coalesce(async () => void runs++, fail, LONG);
  work.call();
  await turn();
  work.call();
  await work.stop();
  work.call();
  await turn();
  expect(runs).toBe(1);
});

test("a run that fails is told, and the next one runs", async () => {
  const errors: unknown[] = [];
  let runs = 0;
  const task = async () => {
    if (++runs === 1) throw new Error("first");
  };
  const work = coalesce(task, (error) => errors.push(error));
  work.call();
  await turn();
  work.call();
  await work.stop();
  expect([runs, errors]).toEqual([2, [new Error("first")]]);
});
