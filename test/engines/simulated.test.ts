import { afterEach, describe, expect, it, vi } from "vitest";
import {
  EngineFailure,
  EngineUnavailable,
  InsufficientCapacity,
} from "../../services/orchestrator/engines/engine.ts";
import { createSimulatedEngine } from "../../services/orchestrator/engines/simulated.ts";
import { FEATURES } from "../../services/sandbox/domain/requirements.ts";
import { allocate, nextStart, UNHURRIED } from "./allocations.ts";
import { describeConformance } from "./conformance.ts";
import { WRITTEN } from "./logs-conformance.ts";

describe("simulated engine: conformance", () => {
  describeConformance(async () => {
    const clinging = new Set<string>();
    const engine = createSimulatedEngine({
      features: FEATURES,
      faultOf({ spec, sandboxId }) {
        engine.settings.delays.stop = clinging.has(sandboxId) ? 60_000 : 0;
        if (spec.image === "none") return { kind: "failure", message: "there is no such image" };
        if (spec.image === "ends") return { kind: "ends", afterMs: 1, exitCode: 0 };
        return undefined;
      },
    });
    return {
      engine,
      thatEnds: (allocation) => withImage(allocation, "ends"),
      thatFails: (allocation) => withImage(allocation, "none"),
      thatClings: (allocation) => {
        clinging.add(allocation.sandboxId);
        return allocation;
      },
      startWriting: async (allocation) => {
        const instance = await engine.ensureRunning(allocation, UNHURRIED);
        for (const { stream, text } of WRITTEN) engine.write(allocation.sandboxId, stream, text);
        return instance;
      },
      close: () => engine.close(),
    };
  });
});

function withImage<T extends ReturnType<typeof allocate>>(allocation: T, image: string): T {
  return { ...allocation, spec: { ...allocation.spec, image } };
}

describe("simulated engine", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("claims what it is given", () => {
    expect(createSimulatedEngine({ features: ["patches"] }).features()).toEqual(["patches"]);
  });

  it("begins with the machines that it is seeded with", async () => {
    const { sandboxId } = allocate();
    const up = {
      sandboxId,
      generation: 3,
      state: "running" as const,
      startedAt: new Date(0),
      endedAt: null,
      exitCode: null,
      outOfMemory: false,
      workloadEndedAt: null,
    };
    const engine = createSimulatedEngine({ features: [], initial: [up] });
    expect(await engine.list()).toEqual([up]);
    expect(
      await engine.ensureRunning(allocate({}, { sandboxId, generation: 3 }), UNHURRIED),
    ).toEqual(up);
    expect(await engine.stop({ sandboxId, generation: 3 }, 0)).toMatchObject({ state: "ended" });
  });

  it("fails as it is told, and no longer than that", async () => {
    const engine = createSimulatedEngine({
      features: [],
      faultOf: () => ({ kind: "failure", message: "the image is bad" }),
    });
    const allocation = allocate();
    await expect(engine.ensureRunning(allocation, UNHURRIED)).rejects.toThrow(
      new EngineFailure("the image is bad"),
    );
    expect(await engine.list()).toEqual([]);
    engine.settings.faultOf = () => undefined;
    expect(await engine.ensureRunning(allocation, UNHURRIED)).toMatchObject({ state: "running" });
  });

  it("holds no more than it has room for, counting what is only starting", async () => {
    const engine = createSimulatedEngine({
      features: [],
      room: { vcpus: 2, memoryMib: 1024 },
      delays: { start: 5, stop: 0 },
    });
    const [first, second, third] = [allocate(), allocate(), allocate()];
    const starts = [first, second, third].map((it) => engine.ensureRunning(it, UNHURRIED));
    const [, , refused] = await Promise.allSettled(starts);
    expect(refused).toMatchObject({ reason: expect.any(InsufficientCapacity) });
    await engine.stop(first, 0);
    expect(await engine.ensureRunning(third, UNHURRIED)).toMatchObject({ state: "running" });
    await expect(engine.ensureRunning(nextStart(first), UNHURRIED)).rejects.toBeInstanceOf(
      InsufficientCapacity,
    );
    const large = allocate({ resources: { vcpus: 1, memoryMib: 4096, diskSizeMib: null } });
    await expect(engine.ensureRunning(large, UNHURRIED)).rejects.toBeInstanceOf(
      InsufficientCapacity,
    );
  });

  it("is away when it is told so, and its machines go on", async () => {
    const engine = createSimulatedEngine({ features: [] });
    const allocation = allocate();
    await engine.ensureRunning(allocation, UNHURRIED);
    const watched = engine.watch(UNHURRIED)[Symbol.asyncIterator]().next();
    engine.setAvailable(false);
    await expect(watched).rejects.toBeInstanceOf(EngineUnavailable);
    const calls = [
      engine.list(),
      engine.capacity(),
      engine.stop(allocation, 0),
      engine.remove(allocation.sandboxId),
      engine.ensureRunning(allocation, UNHURRIED),
    ];
    for (const answer of calls) await expect(answer).rejects.toBeInstanceOf(EngineUnavailable);
    engine.setAvailable(true);
    expect(await engine.list()).toMatchObject([{ state: "running" }]);
  });

  it("takes the time that it is given to start, and gives up when nobody wants it", async () => {
    const engine = createSimulatedEngine({ features: [], delays: { start: 60_000, stop: 0 } });
    const allocation = allocate();
    const unwanted = new AbortController();
    const started = engine.ensureRunning(allocation, unwanted.signal);
    expect(await engine.list()).toMatchObject([{ state: "created", startedAt: null }]);
    unwanted.abort(new Error("no longer wanted"));
    await expect(started).rejects.toThrow("no longer wanted");
    engine.settings.delays.start = 0;
    expect(await engine.ensureRunning(allocation, UNHURRIED)).toMatchObject({ state: "running" });
  });

  it("ends a machine by itself when that is due, unless it has been stopped", async () => {
    vi.useFakeTimers();
    const engine = createSimulatedEngine({
      features: [],
      faultOf: () => ({ kind: "ends", afterMs: 1_000, exitCode: 137, outOfMemory: true }),
    });
    const [left, stopped] = [allocate(), allocate()];
    await engine.ensureRunning(left, UNHURRIED);
    await engine.ensureRunning(stopped, UNHURRIED);
    await engine.stop(stopped, 0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await engine.list()).toMatchObject([
      { state: "ended", exitCode: 137, outOfMemory: true },
      { state: "ended", exitCode: 143, outOfMemory: false },
    ]);
  });

  it("ends a machine on demand, once", async () => {
    const engine = createSimulatedEngine({ features: [] });
    const allocation = allocate();
    await engine.ensureRunning(allocation, UNHURRIED);
    expect(engine.endMachine(allocation.sandboxId, { exitCode: 1 })).toBe(true);
    expect(engine.endMachine(allocation.sandboxId, { exitCode: 2 })).toBe(false);
    expect(await engine.list()).toMatchObject([{ state: "ended", exitCode: 1 }]);
  });

  it("ends a workload on demand, and its machine goes on", async () => {
    const engine = createSimulatedEngine({ features: [] });
    const allocation = allocate();
    expect(engine.endWorkload(allocation.sandboxId)).toBe(false);
    await engine.ensureRunning(allocation, UNHURRIED);
    expect(engine.endWorkload(allocation.sandboxId)).toBe(true);
    expect(await engine.list()).toMatchObject([
      { state: "running", workloadEndedAt: expect.any(Date) },
    ]);
  });

  it("leaves nothing waiting when it is closed", async () => {
    const engine = createSimulatedEngine({ features: [], delays: { start: 60_000, stop: 0 } });
    const watching = engine.watch(UNHURRIED)[Symbol.asyncIterator]().next();
    const starting = engine.ensureRunning(allocate(), UNHURRIED);
    await engine.close();
    await expect(starting).rejects.toThrow();
    expect(await watching).toEqual({ done: true, value: undefined });
  });
});
