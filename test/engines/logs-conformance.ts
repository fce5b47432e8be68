import { expect, it } from "vitest";
import type {
  Allocation,
  Engine,
  LogChunk,
  LogPosition,
} from "../../services/orchestrator/engines/engine.ts";
import { allocate, nextStart, UNHURRIED } from "./allocations.ts";
import type { EngineHarness } from "./conformance.ts";

/** What a machine writes that EngineHarness.startWriting starts. */
export const WRITTEN: readonly { stream: "stdout" | "stderr"; text: string }[] = [
  { stream: "stdout", text: "one\n" },
  { stream: "stderr", text: "first fault\n" },
  { stream: "stdout", text: "two, with ünïcødé ⏳\n" },
  { stream: "stdout", text: "\n" },
  { stream: "stderr", text: "second fault\n" },
  { stream: "stdout", text: "three\n" },
];

export const BEGINNING: LogPosition = { stdout: 0n, stderr: 0n };

/** Everything behind a position, until the run's machine has ended. */
export async function readAll(
  engine: Engine,
  { sandboxId, generation }: Allocation,
  after: LogPosition = BEGINNING,
  admittedAt = new Date(0),
): Promise<LogChunk[]> {
  const chunks: LogChunk[] = [];
  const run = { sandboxId, generation, admittedAt };
  for await (const chunk of await engine.logs(run, after, UNHURRIED)) chunks.push(chunk);
  return chunks;
}

/** The text of each stream. */
export function texts(chunks: readonly LogChunk[]) {
  const of = (wanted: LogChunk["source"]) =>
    chunks
      .filter(({ source }) => source === wanted)
      .map(({ text }) => text)
      .join("");
  return { stdout: of("stdout"), stderr: of("stderr") };
}

/** Where a reader is behind the first `count` chunks. */
export function positionAfter(chunks: readonly LogChunk[], count: number): LogPosition {
  const position = { ...BEGINNING };
  for (const { stream, offset } of chunks.slice(0, count)) position[stream] = offset;
  return position;
}

const written = (wanted: "stdout" | "stderr") =>
  WRITTEN.filter(({ stream }) => stream === wanted)
    .map(({ text }) => text)
    .join("");
const ALL = { stdout: written("stdout"), stderr: written("stderr") };

/** What every engine's logs do. @param mine sandboxes to put away */
export function describeLogs(harness: () => EngineHarness, mine: string[]): void {
  const startWriting = async (allocation: Allocation) => {
    mine.push(allocation.sandboxId);
    await harness().startWriting(allocation);
  };

  /** Ends the machine when all that it writes was written. */
  const stopWhenWritten = async (allocation: Allocation, admittedAt?: Date) => {
    const { engine } = harness();
    const seen: LogChunk[] = [];
    const { sandboxId, generation } = allocation;
    const run = { sandboxId, generation, admittedAt: admittedAt ?? new Date(0) };
    for await (const chunk of await engine.logs(run, BEGINNING, UNHURRIED)) {
      seen.push(chunk);
      const { stdout, stderr } = texts(seen);
      if (stdout === ALL.stdout && stderr === ALL.stderr) await engine.stop(allocation, 0);
    }
    return seen;
  };

  it("follow what a machine writes, each stream in order, until it has ended", async () => {
    const allocation = allocate();
    await startWriting(allocation);
    const followed = await stopWhenWritten(allocation);
    expect(texts(followed)).toEqual(ALL);
    expect(await readAll(harness().engine, allocation)).toEqual(followed);
    for (const wanted of ["stdout", "stderr"] as const) {
      const offsets = followed.filter(({ stream }) => stream === wanted).map((c) => c.offset);
      expect(new Set(offsets).size).toBe(offsets.length);
      expect(offsets.toSorted((a, b) => (a < b ? -1 : 1))).toEqual(offsets);
    }
  });

  it("go on behind any position without loss or repeat", async () => {
    const allocation = allocate();
    await startWriting(allocation);
    const all = await stopWhenWritten(allocation);
    for (let count = 0; count <= all.length; count += 1)
      expect(await readAll(harness().engine, allocation, positionAfter(all, count))).toEqual(
        all.slice(count),
      );
  });

  it("are those of one run alone, and gone with the next", async () => {
    const first = allocate();
    await startWriting(first);
    await stopWhenWritten(first);
    const second = nextStart(first);
    const admittedAt = new Date();
    await startWriting(second);
    expect(texts(await stopWhenWritten(second, admittedAt))).toEqual(ALL);
    expect(await readAll(harness().engine, first)).toEqual([]);
  });

  it("of a machine that is not there are empty, and end when it is removed", async () => {
    const { engine } = harness();
    const allocation = allocate();
    expect(await readAll(engine, allocation)).toEqual([]);
    await startWriting(allocation);
    const run = { ...allocation, admittedAt: new Date(0) };
    const reading = (await engine.logs(run, BEGINNING, UNHURRIED))[Symbol.asyncIterator]();
    for (const _ of WRITTEN) expect(await reading.next()).toMatchObject({ done: false });
    const next = reading.next();
    await engine.remove(allocation.sandboxId);
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it("end with the signal, waiting or not", async () => {
    const { engine } = harness();
    const allocation = allocate();
    await startWriting(allocation);
    const unwanted = new AbortController();
    const run = { ...allocation, admittedAt: new Date(0) };
    const reading = (await engine.logs(run, BEGINNING, unwanted.signal))[Symbol.asyncIterator]();
    for (const _ of WRITTEN) await reading.next();
    const next = reading.next();
    unwanted.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
}
