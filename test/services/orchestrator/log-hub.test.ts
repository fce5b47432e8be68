import { expect, test } from "vitest";
import type { LogChunk, LogPosition } from "../../../services/orchestrator/engines/engine.ts";
import { Bell } from "../../../services/orchestrator/logs/bell.ts";
import { type LogSourceEngine, WINDOW } from "../../../services/orchestrator/logs/feed.ts";
import type { FeedReader } from "../../../services/orchestrator/logs/feed-reader.ts";
import { LogHub } from "../../../services/orchestrator/logs/hub.ts";

const RUN = { sandboxId: "a", generation: 1, admittedAt: new Date(0) };
const BEGINNING: LogPosition = { stdout: 0n, stderr: 0n };

/** An engine with output of any length, which counts what is asked of it. */
class CountingEngine implements LogSourceEngine {
  readings = 0;
  open = 0;
  read = 0;
  readonly #length: number;
  readonly #text: string;

  constructor(length: number, text = "x") {
    this.#length = length;
    this.#text = text;
  }

  async logs(_run: unknown, after: LogPosition, signal: AbortSignal) {
    this.readings += 1;
    return this.#chunks(after, signal);
  }

  // Standard error has every third chunk.
  async *#chunks(after: LogPosition, signal: AbortSignal): AsyncGenerator<LogChunk> {
    this.open += 1;
    try {
      for (let i = 1; i <= this.#length && !signal.aborted; i += 1) {
        const stream = i % 3 === 0 ? "stderr" : "stdout";
        if (BigInt(i) <= after[stream]) continue;
        this.read += 1;
        const text = `${this.#text}${i}`;
        yield { source: stream, stream, offset: BigInt(i), time: BigInt(i), text };
      }
    } finally {
      this.open -= 1;
    }
  }
}

class Follower {
  readonly seen: bigint[] = [];
  readonly #bell: Bell;
  readonly #reader: FeedReader;

  private constructor(reader: FeedReader, bell: Bell) {
    this.#reader = reader;
    this.#bell = bell;
  }

  static async join(hub: LogHub, after = BEGINNING): Promise<Follower> {
    const bell = new Bell();
    return new Follower(await hub.open(RUN, after, bell.ring), bell);
  }

  get position(): LogPosition {
    return this.#reader.position;
  }

  /** Reads so many chunks; false: there were no more. */
  async take(count: number): Promise<boolean> {
    for (let left = count; left > 0; ) {
      const taken = this.#reader.take();
      if (taken === "ended") return false;
      if (taken === undefined) await this.#bell.rung();
      else {
        this.seen.push(taken.offset);
        left -= 1;
      }
    }
    return true;
  }

  leave(): void {
    this.#reader.close();
  }
}

const upTo = (count: number) => Array.from({ length: count }, (_, i) => BigInt(i + 1));

test("those who follow one run share one reading, and each sees everything once", async () => {
  const engine = new CountingEngine(500);
  const hub = new LogHub(engine);
  const followers = await Promise.all(Array.from({ length: 50 }, () => Follower.join(hub)));
  await Promise.all(followers.map((follower) => follower.take(501)));
  for (const { seen } of followers) expect(seen).toEqual(upTo(500));
  expect(engine.readings).toBe(1);
  expect(engine.read).toBe(500);
  expect(hub.held).toBeLessThanOrEqual(1);
  for (const follower of followers) follower.leave();
  expect(hub.feeds).toBe(0);
});

test("a writer gets no farther than its readers ask", async () => {
  // A hundred megabytes and more, were they read.
  const engine = new CountingEngine(1_000_000, "0".repeat(128));
  const hub = new LogHub(engine);
  const follower = await Follower.join(hub);
  await follower.take(10);
  // Whatever is under way has ended by then.
  await new Promise((resolve) => setImmediate(resolve));
  expect(engine.read).toBe(10);
  expect(hub.held).toBeLessThanOrEqual(10);
  follower.leave();
});

test("a follower that does not read holds neither the others up nor the memory", async () => {
  const count = WINDOW.chunks * 5;
  const engine = new CountingEngine(count);
  const hub = new LogHub(engine);
  const [stuck, quick] = [await Follower.join(hub), await Follower.join(hub)];
  await stuck.take(3);
  await quick.take(count + 1);
  expect(quick.seen).toEqual(upTo(count));
  expect(hub.held).toBeLessThanOrEqual(WINDOW.chunks);
  expect(engine.readings).toBe(1);
  await stuck.take(count + 1);
  expect(stuck.seen).toEqual(upTo(count));
  expect(engine.readings).toBe(2);
});

test("long texts make the window shorter", async () => {
  const engine = new CountingEngine(100, "0".repeat(WINDOW.characters / 10));
  const hub = new LogHub(engine);
  const [stuck, quick] = [await Follower.join(hub), await Follower.join(hub)];
  await quick.take(101);
  expect(hub.held).toBeLessThan(10);
  await stuck.take(101);
  expect(stuck.seen).toEqual(upTo(100));
});

test("one who comes late catches up by a reading of his own, and joins the others", async () => {
  const engine = new CountingEngine(3_000);
  const hub = new LogHub(engine);
  const first = await Follower.join(hub);
  await first.take(2_000);
  const late = await Follower.join(hub);
  await late.take(1_999);
  expect(engine.readings).toBe(2);
  await late.take(1);
  await Promise.all([first.take(1_001), late.take(1_001)]);
  expect(late.seen).toEqual(upTo(3_000));
  expect(first.seen).toEqual(upTo(3_000));
  expect(engine.open).toBe(0);
  // The last thousand was read once for both.
  expect(engine.read).toBeLessThan(3_000 + 2_100);
});

test("one who was here before goes on where he was, whoever else reads", async () => {
  const engine = new CountingEngine(400);
  const hub = new LogHub(engine);
  const first = await Follower.join(hub);
  for (const cut of [1, 2, 3, 57, 200]) {
    const before = await Follower.join(hub);
    await before.take(cut);
    const again = await Follower.join(hub, { ...before.position });
    before.leave();
    await again.take(401);
    expect(again.seen).toEqual(upTo(400).slice(cut));
    again.leave();
  }
  await first.take(401);
  expect(first.seen).toEqual(upTo(400));
});

test("what the engine throws reaches everybody, and the next one reads anew", async () => {
  let fail = true;
  const engine = new CountingEngine(3);
  const hub = new LogHub({
    async logs(run, after, signal) {
      const chunks = await engine.logs(run, after, signal);
      if (!fail) return chunks;
      return (async function* () {
        yield* chunks;
        throw new Error("gone");
      })();
    },
  });
  const followers = [await Follower.join(hub), await Follower.join(hub)];
  for (const follower of followers) await expect(follower.take(4)).rejects.toThrow("gone");
  fail = false;
  const next = await Follower.join(hub);
  expect(await next.take(4)).toBe(false);
  expect(next.seen).toEqual(upTo(3));
});
