import { expect, test } from "vitest";
import { type Changes, createChanges, type Watched } from "../../../services/sandbox/changes.ts";
import type { Change } from "../../../services/sandbox/domain/sandbox.ts";

const change = (generation: number): Change => ({
  sandboxId: "s",
  status: "running",
  generation,
  destroyed: false,
});

/** Watches until `many` arrived. */
async function take(changes: Changes, cursor: string, many: number): Promise<Watched[]> {
  const stop = new AbortController();
  const seen: Watched[] = [];
  for await (const watched of changes.watch(cursor, stop.signal)) {
    seen.push(watched);
    if (seen.length === many) stop.abort();
  }
  return seen;
}

const generations = (seen: Watched[]) => seen.map(({ change }) => change?.generation ?? "reset");

test("a first watch is told to read, then hears every change in order", async () => {
  const changes = createChanges();
  changes.publish(change(1));
  const watching = take(changes, "", 3);
  await Promise.resolve();
  changes.publish(change(2));
  changes.publish(change(3));
  expect(generations(await watching)).toEqual(["reset", 2, 3]);
});

test("a watcher that comes back misses nothing and hears nothing twice", async () => {
  const changes = createChanges();
  const watching = take(changes, "", 2);
  await Promise.resolve();
  changes.publish(change(1));
  const [, last] = await watching;
  changes.publish(change(2));
  changes.publish(change(3));
  expect(generations(await take(changes, last?.cursor ?? "", 2))).toEqual([2, 3]);
});

test("one that was away for too long, or comes from another process, is told to read", async () => {
  const changes = createChanges(2);
  const [first] = await take(changes, "", 1);
  for (let i = 1; i <= 9; i += 1) changes.publish(change(i));
  expect(generations(await take(changes, first?.cursor ?? "", 1))).toEqual(["reset"]);
  const foreign = await take(createChanges(), "", 1);
  expect(generations(await take(changes, foreign[0]?.cursor ?? "", 1))).toEqual(["reset"]);
});

test("a watcher that is too slow is told to read, and goes on from there", async () => {
  const changes = createChanges(2);
  const stop = new AbortController();
  const watching = changes.watch("", stop.signal);
  await watching.next();
  for (let i = 1; i <= 9; i += 1) changes.publish(change(i));
  const seen = [await watching.next()];
  changes.publish(change(10));
  seen.push(await watching.next());
  expect(generations(seen.flatMap(({ value }) => value ?? []))).toEqual(["reset", 10]);
  stop.abort();
  expect(await watching.next()).toEqual({ done: true, value: undefined });
});
