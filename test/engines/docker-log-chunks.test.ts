import { describe, expect, test } from "vitest";
import { ChunkReader } from "../../services/orchestrator/engines/docker/logs/chunks.ts";
import { type Frame, frames } from "../../services/orchestrator/engines/docker/logs/frames.ts";
import {
  nanosOf,
  readTime,
  sinceOf,
} from "../../services/orchestrator/engines/docker/logs/timestamps.ts";
import type { LogChunk, LogPosition } from "../../services/orchestrator/engines/engine.ts";
import { BEGINNING, positionAfter } from "./logs-conformance.ts";

const T1 = "2026-11-21T08:15:30.000000005Z";
const T2 = "2026-11-21T08:15:30.000000900Z";
const T3 = "2026-11-21T08:15:31.000000000Z";
/** The daemon makes pieces of this size. */
const PIECE = 16 * 1024;

type Output = Frame & { stream: keyof LogPosition };

function frame(stream: keyof LogPosition, time: string, text: string | Buffer): Output {
  return { stream, payload: Buffer.concat([Buffer.from(`${time} `), Buffer.from(text)]) };
}

function read(given: readonly Output[], after: LogPosition = BEGINNING): LogChunk[] {
  const reader = new ChunkReader(after);
  return [...given.flatMap((each) => reader.read(each.stream, each)), ...reader.end()];
}

async function* cut(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of source) all.push(each);
  return all;
}

describe("frames", () => {
  const encode = (type: number, text: string) => {
    const head = Buffer.from([type, 0, 0, 0, 0, 0, 0, 0]);
    head.writeUInt32BE(Buffer.byteLength(text), 4);
    return Buffer.concat([head, Buffer.from(text)]);
  };
  const bytes = Buffer.concat([encode(1, "out"), encode(2, ""), encode(2, "err"), encode(3, "!")]);

  test("come out the same however the bytes arrive", async () => {
    for (let size = 1; size <= bytes.length; size += 1) {
      const all = await collect(frames(cut(bytes, size)));
      expect(all.map(({ stream, payload }) => [stream, payload.toString()])).toEqual([
        ["stdout", "out"],
        ["stderr", ""],
        ["stderr", "err"],
        ["daemon", "!"],
      ]);
    }
  });

  test("that break off, or are none, are an error", async () => {
    await expect(collect(frames(cut(bytes.subarray(0, -1), 7)))).rejects.toThrow("broke off");
    await expect(collect(frames(cut(Buffer.alloc(20, 9), 7)))).rejects.toThrow("not what");
  });
});

describe("times", () => {
  test("keep their nanoseconds, and go back into a `since`", () => {
    expect(nanosOf(T1) % 1_000_000_000n).toBe(5n);
    expect(nanosOf("2026-11-21T08:15:30Z")).toBe(nanosOf(T1) - 5n);
    expect(nanosOf("2026-11-21T08:15:30.5Z")).toBe(nanosOf(T1) + 499_999_995n);
    expect(sinceOf(nanosOf(T1))).toBe(`${Date.parse("2026-11-21T08:15:30Z") / 1000}.000000005`);
  });

  test("are required of every frame", () => {
    expect(() => readTime(Buffer.from("no time at all"))).toThrow("without its time");
    expect(() => readTime(Buffer.alloc(0))).toThrow("without its time");
  });
});

describe("chunks", () => {
  // A long line, cut inside a character, then lines of both streams.
  const snow = Buffer.from("⛄");
  const log = [
    frame("stdout", T1, Buffer.concat([Buffer.from("a".repeat(PIECE - 1)), snow.subarray(0, 1)])),
    frame("stderr", T1, "fault\n"),
    frame("stdout", T1, Buffer.concat([snow.subarray(1), Buffer.from("b".repeat(PIECE - 2))])),
    // Its line break is lost in the daemon.
    frame("stdout", T1, "c"),
    frame("stdout", T2, "next\n"),
    frame("stderr", T2, "unfinished sandgate: the workload ended with exit code 3\n"),
    frame("stdout", T3, Buffer.from([0x41, 0xff, 0x42, 0xe2])),
  ];
  const all = read(log);

  test("join what the daemon cut, and replace what is no UTF-8 and nothing else", () => {
    expect(all.map(({ source, text }) => [source, text])).toEqual([
      ["stdout", "a".repeat(PIECE - 1)],
      ["stderr", "fault\n"],
      ["stdout", `⛄${"b".repeat(PIECE - 2)}`],
      ["stdout", "c\n"],
      ["stdout", "next\n"],
      ["stderr", "unfinished "],
      ["system", "sandgate: the workload ended with exit code 3\n"],
      ["stdout", "A\ufffdB"],
      ["stdout", "\ufffd"],
    ]);
  });

  test("are numbered by their time, those of one time in a row", () => {
    const offsets = all.filter(({ stream }) => stream === "stdout").map(({ offset }) => offset);
    const [t1, t2, t3] = [nanosOf(T1), nanosOf(T2), nanosOf(T3)];
    expect(offsets).toEqual([t1, t1 + 1n, t1 + 2n, t2, t3, t3 + 1n]);
  });

  test("come again behind every position as they would have come", () => {
    for (let count = 0; count <= all.length; count += 1)
      expect(read(log, positionAfter(all, count))).toEqual(all.slice(count));
  });

  test("that the daemon repeats are not", () => {
    // From the beginning of a line, after the end of one.
    for (const from of [0, 4, 6])
      for (const to of [4, 5, 6, 7])
        expect(read([...log.slice(0, to), ...log.slice(Math.min(from, to))])).toEqual(all);
  });

  test("of standard output are never the supervisor's", () => {
    const line = "sandgate: the workload ended with exit code 0\n";
    expect(read([frame("stdout", T1, line)])).toMatchObject([{ source: "stdout", text: line }]);
    expect(read([frame("stderr", T1, `${line.trim()}?\n`)])).toMatchObject([{ source: "stderr" }]);
  });
});
