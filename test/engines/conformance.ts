import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Allocation,
  type Engine,
  EngineFailure,
  type Instance,
} from "../../services/orchestrator/engines/engine.ts";
import { allocate, nextStart, UNHURRIED } from "./allocations.ts";
import { describeLogs } from "./logs-conformance.ts";
import { describeMounts } from "./mounts-conformance.ts";

/** An engine under test, and what has to be arranged differently for each. */
export interface EngineHarness {
  engine: Engine;
  /** A start whose machine ends by itself at once, with exit code 0. */
  thatEnds(allocation: Allocation): Allocation;
  /** A start that cannot succeed. */
  thatFails(allocation: Allocation): Allocation;
  /** A workload that takes no notice of being asked to end. */
  thatClings(allocation: Allocation): Allocation;
  /** Starts a machine that writes what WRITTEN says, in that order within each stream, and goes on. */
  startWriting(allocation: Allocation): Promise<Instance>;
  /** Runs a shell script in a machine. Undefined: nothing runs there. @returns what it said, trimmed */
  shell?(allocation: Allocation, script: string): Promise<string>;
  close(): Promise<void>;
}

/** What every engine does; its definition of done. */
export function describeConformance(setUp: () => Promise<EngineHarness>): void {
  let harness: EngineHarness;
  let engine: Engine;
  const mine: string[] = [];

  const start = (allocation: Allocation, signal = UNHURRIED) => {
    mine.push(allocation.sandboxId);
    return engine.ensureRunning(allocation, signal);
  };
  const listed = async ({ sandboxId }: Allocation) =>
    (await engine.list()).find((instance) => instance.sandboxId === sandboxId);

  beforeAll(async () => {
    harness = await setUp();
    engine = harness.engine;
  });
  afterAll(async () => {
    for (const sandboxId of mine) await engine.remove(sandboxId);
    await harness.close();
  });

  it("says how much room it has", async () => {
    const { vcpus, memoryMib } = await engine.capacity();
    expect(vcpus).toBeGreaterThan(0);
    expect(memoryMib).toBeGreaterThan(0);
  });

  describe("a start", () => {
    it("answers with a running machine, and with the same one when it is repeated", async () => {
      const allocation = allocate();
      const first = await start(allocation);
      expect(first).toEqual({
        sandboxId: allocation.sandboxId,
        generation: 1,
        state: "running",
        startedAt: expect.any(Date),
        endedAt: null,
        exitCode: null,
        outOfMemory: false,
        workloadEndedAt: null,
      });
      expect(await start(allocation)).toEqual(first);
      expect(await listed(allocation)).toEqual(first);
    });

    it("with nothing to run, which only the image could tell, counts as done from its start", async () => {
      const { runtime } = allocate().spec;
      const allocation = allocate({
        lifecycle: { idleTimeoutSecs: 60 },
        runtime: { ...runtime, cmd: [] },
      });
      const { startedAt, workloadEndedAt } = await start(allocation);
      expect(workloadEndedAt).toEqual(startedAt);
      expect(await listed(allocation)).toMatchObject({ workloadEndedAt: startedAt });
      await engine.stop(allocation, 0);
      // Both within one millisecond could not be told apart.
      await expect.poll(() => Date.now()).toBeGreaterThan(Number(startedAt));
      const again = await start(nextStart(allocation));
      expect(again.startedAt).not.toEqual(startedAt);
      expect(again.workloadEndedAt).toEqual(again.startedAt);
    });

    it("that cannot succeed is an EngineFailure, and so is its repetition", async () => {
      const allocation = harness.thatFails(allocate());
      await expect(start(allocation)).rejects.toBeInstanceOf(EngineFailure);
      await expect(start(allocation)).rejects.toBeInstanceOf(EngineFailure);
    });

    it("that nobody wants throws the signal's reason, and can be taken up again", async () => {
      const allocation = allocate();
      const unwanted = AbortSignal.abort(new Error("nobody wants it"));
      await expect(start(allocation, unwanted)).rejects.toThrow("nobody wants it");
      expect(await start(allocation)).toMatchObject({ generation: 1, state: "running" });
    });

    it("of a generation that has ended does not run it twice", async () => {
      const allocation = allocate();
      await start(allocation);
      await engine.stop(allocation, 0);
      const ended = await listed(allocation);
      expect(ended?.state).toBe("ended");
      expect(await start(allocation)).toEqual(ended);
    });
  });

  describe("a later start", () => {
    it("follows a machine that has ended", async () => {
      const allocation = allocate();
      await start(allocation);
      const ended = await engine.stop(allocation, 0);
      const second = await start(nextStart(allocation));
      expect(second).toMatchObject({ generation: 2, state: "running", endedAt: null });
      expect(second.startedAt?.getTime()).toBeGreaterThanOrEqual(
        ended?.endedAt?.getTime() ?? Infinity,
      );
      expect(await engine.list()).toContainEqual(second);
    });

    it("takes the place of a machine that is still up", async () => {
      const allocation = allocate();
      await start(allocation);
      expect(await start(nextStart(allocation))).toMatchObject({ generation: 2, state: "running" });
      const all = await engine.list();
      expect(all.filter(({ sandboxId }) => sandboxId === allocation.sandboxId)).toHaveLength(1);
    });

    it("is not undone by an earlier one", async () => {
      const allocation = allocate();
      await start(nextStart(allocation));
      await expect(start(allocation)).rejects.toBeInstanceOf(EngineFailure);
      expect(await listed(allocation)).toMatchObject({ generation: 2, state: "running" });
    });
  });

  describe("a stop", () => {
    it("ends the machine and keeps it listed", async () => {
      const allocation = allocate();
      const { startedAt } = await start(allocation);
      const ended = await engine.stop(allocation, 5_000);
      expect(ended).toMatchObject({ generation: 1, state: "ended", startedAt, outOfMemory: false });
      expect(ended?.endedAt?.getTime()).toBeGreaterThanOrEqual(startedAt?.getTime() ?? Infinity);
      expect(await listed(allocation)).toEqual(ended);
    });

    it("asks first, and kills after the grace", async () => {
      const asked = allocate();
      await start(asked);
      expect(await engine.stop(asked, 20_000)).toMatchObject({ exitCode: 128 + 15 });
      const clinging = harness.thatClings(allocate());
      await start(clinging);
      expect(await engine.stop(clinging, 1_000)).toMatchObject({ exitCode: 128 + 9 });
    });

    it("of an earlier run leaves the machine of a later one alone", async () => {
      const allocation = allocate();
      await start(allocation);
      await engine.stop(allocation, 0);
      const second = await start(nextStart(allocation));
      expect(await engine.stop(allocation, 0)).toEqual(second);
      expect(await listed(allocation)).toEqual(second);
    });

    it("is repeatable, and nothing to stop is no error", async () => {
      const allocation = allocate();
      expect(await engine.stop(allocation, 0)).toBeUndefined();
      await start(allocation);
      const ended = await engine.stop(allocation, 0);
      expect(await engine.stop(allocation, 0)).toEqual(ended);
    });
  });

  describe("a removal", () => {
    it("leaves nothing, of a machine that is up too, and is repeatable", async () => {
      const allocation = allocate();
      await start(allocation);
      const { sandboxId } = allocation;
      await Promise.all([engine.remove(sandboxId), engine.remove(sandboxId)]);
      expect(await listed(allocation)).toBeUndefined();
      await engine.remove(sandboxId);
      expect(await engine.stop(allocation, 0)).toBeUndefined();
    });
  });

  describe("logs", () => describeLogs(() => harness, mine));

  describe("volumes", () => describeMounts(() => harness, mine));

  it("lists a machine that ended by itself", async () => {
    const allocation = harness.thatEnds(allocate());
    await start(allocation);
    await expect
      .poll(() => listed(allocation))
      .toMatchObject({ state: "ended", exitCode: 0, startedAt: expect.any(Date) });
  });

  it("hints at every change of a machine, until nobody watches", async () => {
    const allocation = harness.thatEnds(allocate());
    const unwatched = new AbortController();
    const hints: string[] = [];
    const watching = (async () => {
      for await (const sandboxId of engine.watch(unwatched.signal)) hints.push(sandboxId);
    })();
    // A watch sees what happens after it was set up, and nothing says when that is.
    await expect
      .poll(async () => {
        const other = allocate();
        await start(other);
        await engine.remove(other.sandboxId);
        return hints.length;
      })
      .toBeGreaterThan(0);
    const count = () => hints.filter((id) => id === allocation.sandboxId).length;
    await start(allocation);
    // It came up, and it ended.
    await expect.poll(count).toBeGreaterThanOrEqual(2);
    const before = count();
    await engine.remove(allocation.sandboxId);
    await expect.poll(count).toBeGreaterThan(before);
    unwatched.abort();
    await watching;
  });
}
