import { expect, test } from "vitest";
import { hostOf, place, Turns } from "../../../services/orchestrator/domain/placement.ts";
import type { QueuedRun } from "../../../services/orchestrator/store.ts";

const run = (sandboxId: string, vcpus: number, rest: Partial<QueuedRun> = {}): QueuedRun => ({
  sandboxId,
  generation: 1,
  orgId: "o",
  vcpus,
  memoryMib: 1,
  waiting: false,
  overdue: false,
  ...rest,
});
const host = hostOf({ vcpus: 8, memoryMib: 100 }, { cpuOvercommit: 2, memoryOvercommit: 1 });
const room = (vcpus: number, memoryMib = 100) => ({ vcpus, memoryMib });
const ids = (runs: readonly QueuedRun[]) => runs.map(({ sandboxId }) => sandboxId);

test("what fits is placed in order, whatever waits before it; the others are told once", () => {
  const queue = [
    run("a", 3),
    run("b", 4),
    run("c", 2, { memoryMib: 101, waiting: true }),
    run("d", 1),
    run("e", 1, { waiting: true }),
  ];
  const { start, wait, refuse } = place(
    queue.filter(({ sandboxId }) => sandboxId !== "c"),
    host,
    room(4),
    9,
  );
  expect([ids(start), ids(wait), refuse]).toEqual([["a", "d"], ["b"], []]);
});

test("memory counts as vCPUs do", () => {
  const { start, wait } = place(
    [run("a", 1, { memoryMib: 60 }), run("b", 1, { memoryMib: 60 })],
    host,
    room(9),
    9,
  );
  expect([ids(start), ids(wait)]).toEqual([["a"], ["b"]]);
});

test("one that has waited for long holds the room until it fits", () => {
  const held = run("old", 4, { waiting: true, overdue: true });
  const behind = [run("new", 1), run("told", 1, { waiting: true })];
  const { start, wait } = place([held, ...behind], host, room(3), 9);
  expect([ids(start), ids(wait)]).toEqual([[], ["new"]]);
  expect(ids(place([held, ...behind], host, room(5), 9).start)).toEqual(["old", "new"]);
});

test("no more are started than there are slots for; the rest is not told that room is short", () => {
  const { start, wait } = place([run("a", 1), run("b", 1), run("c", 8)], host, room(4), 1);
  expect([ids(start), ids(wait)]).toEqual([["a"], ["c"]]);
});

test("overcommit does not make a host larger for one machine, and may make it smaller", () => {
  const { refuse } = place([run("a", 9)], host, room(16), 9);
  expect(refuse[0]?.why).toBe(
    "it asks for 9 vCPUs, more than the engine's whole host can give (8)",
  );
  const small = hostOf({ vcpus: 8, memoryMib: 100 }, { cpuOvercommit: 1, memoryOvercommit: 0.5 });
  const never = run("a", 1, { memoryMib: 51, waiting: true, overdue: true });
  const { refuse: refused, start } = place([never, run("b", 1)], small, room(8, 50), 9);
  expect(refused[0]?.why).toContain("51 MiB of memory");
  expect(ids(start)).toEqual(["b"]);
});

test("more placed than there is now leaves no room", () => {
  expect(place([run("a", 1)], host, room(-2), 9).start).toEqual([]);
});

test("who was served is behind those that were not, the latest last", () => {
  const turns = new Turns();
  for (const org of ["a", "b", "a"]) turns.serve(org);
  expect(turns.served()).toEqual(["b", "a"]);
});
