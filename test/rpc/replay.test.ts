import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { replay } from "../../runtime/rpc/replay.ts";
import { markUnprocessed } from "../../runtime/rpc/unprocessed.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

async function* numbers(count: number) {
  for (let i = 0; i < count; i += 1) yield i;
}

async function take(iterator: AsyncIterator<number>, count: number): Promise<number[]> {
  const taken: number[] = [];
  while (taken.length < count) {
    const { done, value } = await iterator.next();
    if (done) break;
    taken.push(value);
  }
  return taken;
}

const ALL = Array.from({ length: 30 }, (_, i) => i);

/** After a first attempt that took some of the messages and was never processed. */
async function refused(taken: number) {
  const sent = replay(numbers(ALL.length));
  const first = sent.attempt()[Symbol.asyncIterator]();
  expect(await take(first, taken)).toEqual(ALL.slice(0, taken));
  await first.throw?.(markUnprocessed(new Error("refused")));
  expect(sent.isWhole).toBe(true);
  return { sent, again: () => sent.attempt()[Symbol.asyncIterator]() };
}

test("another attempt sends every message, from the first on", async () => {
  const { again } = await refused(7);
  expect(await take(again(), 100)).toEqual(ALL);
});

test("and loses none when nothing is kept any more while it is at it", async () => {
  const { sent, again } = await refused(10);
  const iterator = again();
  const begun = await take(iterator, 3);
  vi.advanceTimersByTime(60_000);
  expect(sent.isWhole).toBe(false);
  expect([...begun, ...(await take(iterator, 100))]).toEqual(ALL);
});

test("nor in the pause before it", async () => {
  const { sent, again } = await refused(10);
  vi.advanceTimersByTime(60_000);
  expect(sent.isWhole).toBe(false);
  expect(await take(again(), 100)).toEqual(ALL);
});

test("there is none where messages are gone", async () => {
  const sent = replay(numbers(ALL.length));
  await take(sent.attempt()[Symbol.asyncIterator](), 10);
  sent.settle();
  expect(() => sent.attempt()).toThrow(expect.objectContaining({ code: Code.Unavailable }));
});
