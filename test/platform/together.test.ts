import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Together } from "../../runtime/together.ts";

/** Questions are noted, and answered when the test says so. */
function open(options: { most?: number; patienceMs?: number } = {}) {
  const asked: { items: readonly number[]; answer: PromiseWithResolvers<readonly string[]> }[] = [];
  const together = new Together<number, string>({
    most: 100,
    patienceMs: 60_000,
    ...options,
    ask: (items) => {
      const answer = Promise.withResolvers<readonly string[]>();
      asked.push({ items, answer });
      return answer.promise;
    },
  });
  const answer = (at: number) =>
    asked[at]?.answer.resolve(asked[at].items.map((item) => `${item} by ${at}`));
  return { together, asked: () => asked.map(({ items }) => items), answer, fail: asked };
}

test("what comes at the same moment is one question, each with its own answer", async () => {
  const { together, asked, answer } = open();
  const answers = [1, 2, 1].map((item) => together.ask("a", item));
  await turn();
  expect(asked()).toEqual([[1, 2, 1]]);
  answer(0);
  expect(await Promise.all(answers)).toEqual(["1 by 0", "2 by 0", "1 by 0"]);
});

test("who comes while a question is under way is asked for with the next, never answered by that one", async () => {
  const { together, asked, answer } = open();
  const first = together.ask("a", 1);
  await turn();
  const later = [2, 3].map((item) => together.ask("a", item));
  await turn();
  expect(asked()).toEqual([[1]]);
  answer(0);
  expect(await first).toBe("1 by 0");
  await turn();
  expect(asked()).toEqual([[1], [2, 3]]);
  answer(1);
  expect(await Promise.all(later)).toEqual(["2 by 1", "3 by 1"]);
});

test("groups do not wait for each other, and no question has more than it may", async () => {
  const { together, asked, answer } = open({ most: 2 });
  const all = [1, 2, 3].map((item) => together.ask("a", item));
  all.push(together.ask("b", 4));
  await turn();
  expect(asked()).toEqual([[1, 2], [4]]);
  answer(0);
  answer(1);
  await turn();
  await turn();
  expect(asked()).toEqual([[1, 2], [4], [3]]);
  answer(2);
  expect(await Promise.all(all)).toEqual(["1 by 0", "2 by 0", "3 by 2", "4 by 1"]);
});

test("a question that takes long holds nobody back", async () => {
  const { together, asked, answer } = open({ patienceMs: 1 });
  const slow = together.ask("a", 1);
  await turn();
  const next = together.ask("a", 2);
  await expect.poll(asked).toEqual([[1], [2]]);
  answer(1);
  expect(await next).toBe("2 by 1");
  answer(0);
  expect(await slow).toBe("1 by 0");
});

test("what a question fails with is told to all whom it was asked for, and the next is asked", async () => {
  const { together, asked, answer, fail } = open();
  const lost = [1, 2].map((item) => together.ask("a", item));
  await turn();
  fail[0]?.answer.reject(new Error("away"));
  for (const one of lost) await expect(one).rejects.toThrow("away");
  const next = together.ask("a", 3);
  await turn();
  expect(asked()).toEqual([[1, 2], [3]]);
  answer(1);
  expect(await next).toBe("3 by 1");
});
