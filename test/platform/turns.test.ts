import { expect, test } from "vitest";
import { Turns } from "../../runtime/turns.ts";

const full = new Error("full");
const late = new Error("late");

function turnsOf(options: Partial<ConstructorParameters<typeof Turns>[0]> = {}) {
  return new Turns({
    atOnce: 3,
    atOnceOfOne: 2,
    waiting: 4,
    patienceMs: 60_000,
    refuse: (why) => ({ full, late })[why],
    ...options,
  });
}

const of = (owner: string | undefined, signal?: AbortSignal) => ({ owner, signal });

/** Takes a turn, and says in `log` when it came. */
function line(turns: Turns, log: string[], owner: string, name: string) {
  return turns.take(of(owner)).then((leave) => {
    log.push(name);
    return leave;
  });
}

test("who has his share waits for his own to end, and holds nobody else up", async () => {
  const turns = turnsOf();
  const [first] = await Promise.all([turns.take(of("a")), turns.take(of("a"))]);
  const log: string[] = [];
  const third = line(turns, log, "a", "a3");
  const other = await turns.take(of("b"));
  expect(log).toEqual([]);
  other();
  await Promise.resolve();
  expect(log).toEqual([]);
  first?.();
  await third;
  expect(turns.numbers).toEqual({ held: 2, waiting: 0, refused: 0 });
});

test("nobody's has no share: it may take all there is", async () => {
  const turns = turnsOf();
  await Promise.all([1, 2, 3].map(() => turns.take(of(undefined))));
  expect(turns.numbers.held).toBe(3);
});

test("owners take turns, each with its oldest first", async () => {
  const turns = turnsOf({ atOnce: 1, atOnceOfOne: 1, waiting: 10 });
  const held = await turns.take(of("x"));
  const log: string[] = [];
  const waiting = [
    line(turns, log, "a", "a1"),
    line(turns, log, "a", "a2"),
    line(turns, log, "a", "a3"),
    line(turns, log, "b", "b1"),
  ];
  held();
  for (const next of [waiting[0], waiting[3], waiting[1], waiting[2]]) (await next)?.();
  expect(log).toEqual(["a1", "b1", "a2", "a3"]);
  expect(turns.numbers).toEqual({ held: 0, waiting: 0, refused: 0 });
});

test("the queue has an end, and one owner half of it", async () => {
  const turns = turnsOf({ atOnce: 1, atOnceOfOne: 1 });
  const leave = await turns.take(of("a"));
  const waiting = [turns.take(of("a")), turns.take(of("a"))];
  await expect(turns.take(of("a"))).rejects.toBe(full);
  waiting.push(turns.take(of("b")), turns.take(of(undefined)));
  await expect(turns.take(of("c"))).rejects.toBe(full);
  expect(turns.numbers).toEqual({ held: 1, waiting: 4, refused: 2 });
  leave();
  for (const next of [0, 2, 3, 1]) (await waiting[next])?.();
  expect(turns.numbers).toEqual({ held: 0, waiting: 0, refused: 2 });
});

test("nobody waits for ever", async () => {
  const turns = turnsOf({ atOnce: 1, patienceMs: 1 });
  const leave = await turns.take(of("a"));
  await expect(turns.take(of("b"))).rejects.toBe(late);
  leave();
  (await turns.take(of("b")))();
  expect(turns.numbers).toEqual({ held: 0, waiting: 0, refused: 1 });
});

test("whoever goes away leaves his place in the queue, and takes no turn", async () => {
  const turns = turnsOf({ atOnce: 1 });
  const leave = await turns.take(of("a"));
  const gone = new AbortController();
  const waiting = turns.take(of("b", gone.signal));
  const behind = turns.take(of("b"));
  gone.abort(new Error("gone"));
  await expect(waiting).rejects.toThrow("gone");
  expect(turns.numbers).toEqual({ held: 1, waiting: 1, refused: 0 });
  leave();
  (await behind)();
  await expect(turns.take(of("b", gone.signal))).rejects.toThrow("gone");
  expect(turns.numbers).toEqual({ held: 0, waiting: 0, refused: 0 });
});
