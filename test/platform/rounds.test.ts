import { expect, test } from "vitest";
import { startRounds } from "../../runtime/rounds.ts";

test("rounds follow each other, never two at once, until the stop has waited for the last", async () => {
  let rounds = 0;
  let open = 0;
  let most = 0;
  const working = startRounds(
    async () => {
      rounds += 1;
      open += 1;
      most = Math.max(most, open);
      await new Promise((done) => setTimeout(done, 1));
      open -= 1;
      return 0;
    },
    (error) => expect.fail(String(error)),
  );
  await expect.poll(() => rounds).toBeGreaterThan(3);
  await working.stop();
  const atStop = rounds;
  expect([open, most]).toEqual([0, 1]);
  await new Promise((done) => setTimeout(done, 20));
  expect(rounds).toBe(atStop);
});

test("a round that fails is told, and tried again", async () => {
  const told: unknown[] = [];
  let rounds = 0;
  const working = startRounds(
    async () => {
      rounds += 1;
      if (rounds === 1) throw new Error("no");
      return 60_000;
    },
    (error) => told.push(error),
  );
  await expect.poll(() => rounds, { timeout: 10_000 }).toBe(2);
  expect(told).toEqual([new Error("no")]);
  await working.stop();
});
