import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import type { Change } from "../../../services/sandbox/domain/sandbox.ts";
import { readNews } from "../../../services/sandbox/peer-news.ts";
import { Peers } from "../../../services/sandbox/peers.ts";
import type { PeerEars, PeerLine } from "../../../services/sandbox/store/peer-line.ts";

const TIMES = { beatMs: 20, silentMs: 500, lateMs: 300 };

/** A line as PostgreSQL is one: everybody who is open hears everybody, itself too, in one order. */
class Bus {
  readonly said: string[] = [];
  readonly #open = new Map<PeerLine, PeerEars>();

  readonly join = (ears: PeerEars): PeerLine => {
    const line: PeerLine = {
      say: async (text) => {
        if (!this.#open.has(line)) throw new Error("the line is cut");
        this.said.push(text);
        for (const each of this.#open.values()) setImmediate(each.heard, text);
      },
      end: async () => {
        this.#open.delete(line);
      },
    };
    setImmediate(() => {
      this.#open.set(line, ears);
      ears.open();
    });
    return line;
  };

  /** Of all, as when PostgreSQL restarts. */
  cut(): void {
    const all = [...this.#open.values()];
    this.#open.clear();
    for (const ears of all) ears.lost(new Error("cut"));
  }

  /** All that were told. */
  get told(): Change[] {
    return this.said.flatMap((text) => readNews(text)?.changes ?? []);
  }
}

const running: Peers[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((peers) => peers.stop()));
});

async function start(open: (ears: PeerEars) => PeerLine) {
  const heard: (number | "reset")[] = [];
  const changes = {
    publish: ({ generation }: Change) => void heard.push(generation),
    reset: () => void heard.push("reset"),
  };
  const peers = new Peers(changes, open, () => undefined, TIMES);
  running.push(peers);
  await peers.join();
  return { peers, heard };
}

/** After the resets with which every process begins. */
async function startTwo(bus: Bus) {
  const one = await start(bus.join);
  let isSilent = false;
  // The second can be made to die without a word.
  const other = await start((ears) => {
    const line = bus.join(ears);
    return { ...line, say: async (text) => (isSilent ? undefined : line.say(text)) };
  });
  await sleep(TIMES.lateMs + 10 * TIMES.beatMs);
  for (const { heard } of [one, other]) heard.length = 0;
  const die = () => {
    isSilent = true;
  };
  return { one, other, die };
}

const change = (generation: number): Change => ({
  sandboxId: randomUUID(),
  status: "running",
  generation,
  destroyed: true,
});

test("what one changes the others hear, in its order, and nobody is told to read", async () => {
  const { one, other } = await startTwo(new Bus());
  const many = Array.from({ length: 500 }, (_, i) => i + 1);
  for (const generation of many) other.peers.tell(change(generation));
  one.peers.tell(change(7));
  await expect.poll(() => one.heard).toEqual(many);
  await expect.poll(() => other.heard).toEqual([7]);
});

test("a message is one that PostgreSQL takes", async () => {
  const bus = new Bus();
  const { other } = await startTwo(bus);
  for (let i = 0; i < 1_000; i += 1)
    other.peers.tell({ ...change(2_147_483_647), status: "stopping" });
  await expect.poll(() => bus.told.length).toBe(1_000);
  expect(Math.max(...bus.said.map((text) => Buffer.byteLength(text)))).toBeLessThan(8_000);
});

test("one that is alone tells nobody, and who comes is told to read", async () => {
  const bus = new Bus();
  const alone = await start(bus.join);
  alone.peers.tell(change(1));
  const next = await start(bus.join);
  await expect.poll(() => next.heard.length).toBeGreaterThan(1);
  expect(new Set(next.heard)).toEqual(new Set(["reset"]));
  expect(bus.told).toEqual([]);
});

test("one that dies may have committed what it never told, then or a little later", async () => {
  const { one, die } = await startTwo(new Bus());
  die();
  await expect.poll(() => one.heard, { timeout: 10_000 }).toEqual(["reset", "reset"]);
});

test("what could not be told is a gap, at which the others read", async () => {
  const bus = new Bus();
  const one = await start(bus.join);
  let fails = false;
  const other = await start((ears) => {
    const line = bus.join(ears);
    const say = async (text: string) => {
      if (fails && (readNews(text)?.changes.length ?? 0) > 0) throw new Error("not sent");
      return line.say(text);
    };
    return { ...line, say };
  });
  await sleep(TIMES.lateMs + 10 * TIMES.beatMs);
  one.heard.length = 0;
  fails = true;
  other.peers.tell(change(1));
  await expect.poll(() => one.heard).toEqual(["reset"]);
  fails = false;
  other.peers.tell(change(2));
  await expect.poll(() => one.heard).toEqual(["reset", 2]);
});

/** A second process whose changes get out when they are let. */
async function startHeld(bus: Bus) {
  const one = await start(bus.join);
  let held = Promise.withResolvers<void>();
  held.resolve();
  const other = await start((ears) => {
    const line = bus.join(ears);
    const say = async (text: string) => {
      await held.promise;
      return line.say(text);
    };
    return { ...line, say };
  });
  await sleep(TIMES.lateMs + 10 * TIMES.beatMs);
  one.heard.length = 0;
  const hold = () => {
    held = Promise.withResolvers<void>();
  };
  return { one, other, hold, release: () => held.resolve() };
}

test("while PostgreSQL is slow changes gather, and nobody is told to read", async () => {
  const { one, other, hold, release } = await startHeld(new Bus());
  hold();
  const many = Array.from({ length: 4_800 }, (_, i) => i + 1);
  for (const generation of many) other.peers.tell(change(generation));
  await sleep(TIMES.beatMs);
  release();
  await expect.poll(() => one.heard.length).toBeGreaterThanOrEqual(many.length);
  await sleep(5 * TIMES.beatMs);
  expect(one.heard).toEqual(many);
});

test("but not without end: the others read then", async () => {
  const bus = new Bus();
  const { one, other, hold, release } = await startHeld(bus);
  hold();
  for (let i = 0; i < 20_000; i += 1) other.peers.tell(change(1));
  release();
  await expect.poll(() => one.heard).toContain("reset");
  expect(bus.told.length).toBeLessThan(10_000);
});

test("while no line can be had, everybody here reads now and then", async () => {
  const bus = new Bus();
  let gone = false;
  const { heard } = await start((ears) => {
    if (!gone) return bus.join(ears);
    setImmediate(() => ears.lost(new Error("too many connections")));
    return { say: async () => undefined, end: async () => undefined };
  });
  await sleep(TIMES.lateMs + 10 * TIMES.beatMs);
  heard.length = 0;
  gone = true;
  bus.cut();
  await expect
    .poll(() => heard.length, { timeout: 10_000, message: "one look after each attempt" })
    .toBeGreaterThan(2);
});

test("one that says goodbye is none", async () => {
  const { one, other } = await startTwo(new Bus());
  other.peers.tell(change(1));
  await other.peers.stop();
  await sleep(TIMES.silentMs + TIMES.lateMs);
  expect(one.heard).toEqual([1]);
});

test("after the line was cut everybody reads, and hears again", async () => {
  const bus = new Bus();
  const { one, other } = await startTwo(bus);
  bus.cut();
  other.peers.tell(change(1));
  await expect.poll(() => one.heard, { timeout: 10_000 }).toContain("reset");
  await expect
    .poll(
      () => {
        other.peers.tell(change(2));
        return one.heard;
      },
      { timeout: 10_000 },
    )
    .toContain(2);
});

test("what is not understood is a reason to read", async () => {
  const bus = new Bus();
  const { one } = await startTwo(bus);
  const stranger = bus.join({ open: () => {}, heard: () => {}, lost: () => {} });
  await expect
    .poll(() =>
      stranger.say("of the next release").then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  await expect.poll(() => one.heard).toContain("reset");
});
