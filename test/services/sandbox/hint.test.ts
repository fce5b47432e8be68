import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createHint } from "../../../services/sandbox/hint.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("the first is sent at once, those that follow soon as one more, and later ones again", async () => {
  const send = vi.fn(async () => undefined);
  const hint = createHint(send, () => undefined);
  hint();
  expect(send).toHaveBeenCalledTimes(1);
  for (let i = 0; i < 100; i += 1) hint();
  expect(send).toHaveBeenCalledTimes(1);
  await vi.runAllTimersAsync();
  expect(send).toHaveBeenCalledTimes(2);
  hint();
  expect(send).toHaveBeenCalledTimes(3);
});

test("one that fails is told, and the next is sent all the same", async () => {
  const onError = vi.fn();
  const send = vi.fn(async () => {
    throw new Error("no database");
  });
  const hint = createHint(send, onError);
  hint();
  await vi.runAllTimersAsync();
  hint();
  await vi.runAllTimersAsync();
  expect(send).toHaveBeenCalledTimes(2);
  expect(onError).toHaveBeenCalledTimes(2);
});
