import { afterEach, beforeEach, expect, test } from "vitest";
import { type Line, openLine } from "../../runtime/postgres/line.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let at: TestDatabase;
const lines: Line[] = [];
beforeEach(async () => {
  at = await createTestDatabase();
});
afterEach(async () => {
  await Promise.all(lines.splice(0).map((line) => line.end()));
  await at.close();
});

/** A line that hears itself, and what comes of it. */
async function open(proveEveryMs = 60_000) {
  const heard: string[] = [];
  const lost: unknown[] = [];
  let proofs = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const line = openLine(
    { url: at.url, channels: ["words"], proveEveryMs, silentAfterMs: 5_000 },
    {
      open: resolve,
      heard: (channel, payload) => heard.push(`${channel} ${payload}`),
      proven: () => {
        proofs += 1;
      },
      lost: (error) => lost.push(error),
    },
  );
  lines.push(line);
  await promise;
  return { line, heard, lost, proofs: () => proofs };
}

test("what is said at once is heard in its order, and pg has nothing to warn of", async () => {
  const warnings: string[] = [];
  const warn = ({ message }: Error) => void warnings.push(message);
  process.on("warning", warn);
  const { line, heard, lost, proofs } = await open(1);
  const words = Array.from({ length: 100 }, (_, n) => String(n));
  await Promise.all(words.map((word) => line.notify("words", word)));
  await expect.poll(() => heard).toEqual(words.map((word) => `words ${word}`));
  await expect.poll(proofs).toBeGreaterThan(2);
  process.off("warning", warn);
  expect([lost, warnings]).toEqual([[], []]);
});

test("what cannot be said fails for itself, and the next is said", async () => {
  const { line, heard, lost } = await open();
  const [long, short] = await Promise.allSettled([
    line.notify("words", "x".repeat(8_000)),
    line.notify("words", "short"),
  ]);
  expect([long.status, short.status]).toEqual(["rejected", "fulfilled"]);
  await expect.poll(() => heard).toEqual(["words short"]);
  expect(lost).toEqual([]);
});

test("one that has ended says nothing more, and is not lost", async () => {
  const { line, lost } = await open();
  await line.end();
  await expect(line.notify("words", "late")).rejects.toThrow();
  expect(lost).toEqual([]);
});
