import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  LogSource,
  type ReadLogsResponse,
} from "../../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { callerKey } from "../../../runtime/rpc/context.ts";
import * as change from "../../../services/sandbox/domain/change-sandbox.ts";
import { createSandbox } from "../../../services/sandbox/domain/create-sandbox.ts";
import { createInput, newCaller } from "../sandbox/support.ts";
import { createSystem, type System } from "./support.ts";

let system: System;
beforeAll(async () => {
  system = await createSystem();
});
afterAll(() => system.close());

const EVERYTHING = [LogSource.STDOUT, LogSource.STDERR, LogSource.SYSTEM];

interface Reading {
  sources?: LogSource[];
  after?: Uint8Array;
  caller?: System["caller"];
  signal?: AbortSignal;
}

function open(sandboxId: string, { sources = [], after, caller, signal }: Reading = {}) {
  const contextValues = createContextValues().set(callerKey, caller ?? system.caller);
  return system.orchestrators.readLogs(
    { sandboxId, sources, ...(after ? { after } : {}) },
    { contextValues, ...(signal ? { signal } : {}) },
  );
}

/** What arrives, as it arrives. */
function follow(sandboxId: string, reading: Reading = {}) {
  const events: ReadLogsResponse["event"][] = [];
  const done = (async () => {
    for await (const { event } of open(sandboxId, reading)) events.push(event);
  })();
  // Each test looks at it; one that failed before has no need to.
  done.catch(() => undefined);
  const texts = () => events.flatMap((event) => (event.case === "entry" ? [event.value.text] : []));
  const kinds = () => events.map((event) => event.case);
  return { events, done, texts, kinds };
}

const running = async () => {
  const { id } = await system.create();
  await expect.poll(async () => (await system.get(id)).status).toBe("running");
  return id;
};
const status = async (id: string) => (await system.get(id)).status;
const stop = (id: string) => change.stopSandbox(system.ctx, system.caller, { id });
const startAgain = (id: string) => change.startSandbox(system.ctx, system.caller, { id });
const destroy = (id: string) => change.destroySandbox(system.ctx, system.caller, { id });
const reasonOf = (error: unknown) => ConnectError.from(error).code;

describe("a follower", () => {
  test("sees output as it comes, from the first byte, until the run has ended", async () => {
    const id = await running();
    system.engine.write(id, "stdout", "before\n");
    const follower = follow(id);
    await expect.poll(follower.texts).toEqual(["before\n"]);
    system.engine.write(id, "stderr", "after\n");
    await expect.poll(follower.texts).toEqual(["before\n", "after\n"]);
    expect(follower.kinds()).toEqual(["opened", "entry", "entry"]);
    await stop(id);
    await follower.done;
    expect(follower.kinds()).toEqual(["opened", "entry", "entry", "ended"]);
    const replay = follow(id);
    await replay.done;
    expect(replay.events).toEqual(follower.events);
  });

  test("of a sandbox that never ran is told at once that there is nothing", async () => {
    const input = createInput({}, { name: "", start: false });
    const { id } = await createSandbox(system.ctx, system.caller, input);
    const follower = follow(id);
    await follower.done;
    expect(follower.kinds()).toEqual(["opened", "ended"]);
  });

  test("of a sandbox that is starting waits for it, and misses nothing", async () => {
    system.engine.settings.delays.start = 60_000;
    const { id } = await system.create();
    const follower = follow(id);
    await expect.poll(follower.kinds).toEqual(["opened"]);
    const another = follow(id);
    await stop(id);
    system.engine.settings.delays.start = 0;
    await Promise.all([follower.done, another.done]);
    expect(follower.kinds()).toEqual(["opened", "ended"]);
    await expect.poll(() => status(id)).toBe("stopped");

    system.engine.settings.delays.start = 300;
    await startAgain(id);
    const next = follow(id);
    await expect.poll(() => system.engine.write(id, "stdout", "first byte\n")).toBe(true);
    await expect.poll(next.texts).toContain("first byte\n");
    system.engine.settings.delays.start = 0;
    await stop(id);
    await next.done;
    expect(new Set(next.texts()).size).toBe(1);
  });

  test("of one run ends with it, and sees nothing of the next", async () => {
    const id = await running();
    system.engine.write(id, "stdout", "of the first\n");
    const first = follow(id);
    await expect.poll(first.texts).toHaveLength(1);
    await stop(id);
    await expect.poll(() => status(id)).toBe("stopped");
    await startAgain(id);
    await expect.poll(() => status(id)).toBe("running");
    system.engine.write(id, "stdout", "of the second\n");
    await first.done;
    expect(first.texts()).toEqual(["of the first\n"]);

    // A cursor of the first run begins at the beginning of the second.
    const [, entry] = first.events;
    if (entry?.case !== "entry") throw new Error("no entry");
    const second = follow(id, { after: entry.value.cursor });
    await expect.poll(second.texts).toEqual(["of the second\n"]);
    await stop(id);
    await second.done;
  });

  test("of a sandbox that is destroyed is told that it is over", async () => {
    const id = await running();
    const follower = follow(id, { sources: EVERYTHING });
    await expect.poll(follower.kinds).toContain("opened");
    await destroy(id);
    await follower.done;
    expect(follower.kinds().at(-1)).toBe("ended");
    await expect(follow(id).done).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("who hangs up leaves nothing behind", async () => {
    const id = await running();
    const gone = new AbortController();
    const followers = Array.from({ length: 5 }, () => follow(id, { signal: gone.signal }));
    await expect.poll(() => followers.every(({ events }) => events.length === 1)).toBe(true);
    await expect.poll(() => system.engine.logReaders).toBe(1);
    gone.abort();
    for (const { done } of followers)
      await expect(done).rejects.toMatchObject({ code: Code.Canceled });
    await expect.poll(() => system.engine.logReaders).toBe(0);
    await stop(id);
  });

  test("is told nothing false while the engine is away, and may come back", async () => {
    const id = await running();
    system.engine.write(id, "stdout", "one\n");
    const follower = follow(id);
    await expect.poll(follower.texts).toEqual(["one\n"]);
    system.engine.setAvailable(false);
    await expect(follower.done).rejects.toMatchObject({ code: Code.Unavailable });
    expect(follower.kinds()).not.toContain("ended");
    await expect(follow(id).done).rejects.toMatchObject({ code: Code.Unavailable });
    system.engine.setAvailable(true);
    const [, entry] = follower.events;
    if (entry?.case !== "entry") throw new Error("no entry");
    system.engine.write(id, "stdout", "two\n");
    const back = follow(id, { after: entry.value.cursor });
    await expect.poll(back.texts).toEqual(["two\n"]);
    await stop(id);
    await back.done;
  });
});

describe("lifecycle lines", () => {
  test("tell a run's life in order, and are never told twice", async () => {
    const id = await running();
    const live = follow(id, { sources: EVERYTHING });
    await expect.poll(() => live.texts().length).toBeGreaterThanOrEqual(3);
    system.engine.write(id, "stdout", "hello\n");
    await expect.poll(live.texts).toContain("hello\n");
    await stop(id);
    await live.done;
    const told = [
      "sandgate: the start was admitted\n",
      "sandgate: the run was placed\n",
      "sandgate: the machine is up\n",
      "hello\n",
      "sandgate: a stop was asked for\n",
      "sandgate: the run ended\n",
    ];
    expect(live.texts()).toEqual(told);
    const cursors = live.events.flatMap((event) =>
      event.case === "entry" ? [event.value.cursor] : [],
    );
    for (const [i, after] of cursors.entries()) {
      const rest = follow(id, { sources: EVERYTHING, after });
      await rest.done;
      expect(rest.texts()).toEqual(told.slice(i + 1));
    }
  });

  test("say why a run failed", async () => {
    const id = await running();
    const live = follow(id, { sources: [LogSource.SYSTEM] });
    await expect.poll(() => live.texts().length).toBeGreaterThanOrEqual(3);
    system.engine.write(id, "stdout", "not asked for\n");
    system.engine.endMachine(id, { exitCode: 3 });
    await live.done;
    expect(live.texts().at(-1)).toMatch(/^sandgate: the run failed: .*exit code 3/);
    expect(live.texts()).not.toContain("not asked for\n");
  });
});

describe("a refusal", () => {
  test("of a sandbox that is another organization's, or nobody's, is the same", async () => {
    const id = await running();
    const nobody = "019a9f2e-6f0a-7c3e-9b57-3f0d6a1c2b44";
    const errors = await Promise.all([
      follow(id, { caller: newCaller() }).done.catch((error: unknown) => error),
      follow(nobody).done.catch((error: unknown) => error),
    ]);
    expect(errors.map(reasonOf)).toEqual([Code.NotFound, Code.NotFound]);
    expect(ConnectError.from(errors[0]).message).toBe(ConnectError.from(errors[1]).message);
    await stop(id);
  });

  test("of a cursor that was never given out", async () => {
    const id = await running();
    const pair = (generation: bigint) => {
      const bytes = Buffer.alloc(16);
      bytes.writeBigUInt64LE(generation);
      return bytes;
    };
    const of = (...generations: bigint[]) =>
      Buffer.concat([Buffer.from([generations.length]), ...generations.map(pair)]);
    for (const after of [of(1n), of(1n, 1n, 2n), of(9n, 9n, 9n), Buffer.from([3]), of(0n, 1n)])
      await expect(follow(id, { after }).done).rejects.toMatchObject({
        code: Code.InvalidArgument,
      });
    const fine = follow(id, { after: of() });
    await expect.poll(fine.kinds).toEqual(["opened"]);
    await stop(id);
    await fine.done;
  });
});
