import { EventEmitter, once } from "node:events";
import { expect, test, vi } from "vitest";
import { Lifecycle, onSignals } from "../../runtime/lifecycle.ts";

const LONG = 60_000;
const quiet = { error: () => {}, warn: () => {} };

/** Starts a part whose end is written down. */
function part(lifecycle: Lifecycle, ends: string[], name: string) {
  return lifecycle.start(name, { start: () => name, end: () => void ends.push(name) });
}

test("parts end in the opposite order of their start, once", async () => {
  const lifecycle = new Lifecycle(quiet);
  const ends: string[] = [];
  for (const name of ["a", "b", "c"]) expect(await part(lifecycle, ends, name)).toBe(name);
  await Promise.all([lifecycle.stop(LONG), lifecycle.stop(LONG)]);
  expect(ends).toEqual(["c", "b", "a"]);
});

test("a part that fails to end is logged, and the others end", async () => {
  const log = { error: vi.fn(), warn: vi.fn() };
  const lifecycle = new Lifecycle(log);
  const ends: string[] = [];
  await part(lifecycle, ends, "a");
  const fail = async () => {
    throw new Error("no");
  };
  await lifecycle.start("b", { start: () => undefined, end: fail });
  await lifecycle.stop(LONG);
  expect(ends).toEqual(["a"]);
  expect(log.error).toHaveBeenCalledWith({ err: new Error("no"), part: "b" }, expect.any(String));
});

test("a forced stop waits only for what would outlive the program", async () => {
  const lifecycle = new Lifecycle(quiet);
  const server = new EventEmitter();
  const ended = once(server, "ended");
  const never = () => new Promise<void>(() => {});
  await lifecycle.start("server", {
    start: () => server,
    end: () => ended.then(() => {}),
    always: true,
  });
  await lifecycle.start("stuck", { start: () => undefined, end: never });
  const stopped = lifecycle.stop(LONG);
  lifecycle.force();
  const first = await Promise.race([
    stopped.then(() => "stopped"),
    new Promise((go) => setImmediate(go, "waiting")),
  ]);
  expect(first).toBe("waiting");
  server.emit("ended");
  await stopped;
});

test("past the limit it is forced", async () => {
  const lifecycle = new Lifecycle(quiet);
  await lifecycle.start("stuck", {
    start: () => undefined,
    end: () => new Promise<void>(() => {}),
  });
  await lifecycle.stop(1);
});

test("a stop while a part starts ends that part, and starts no other", async () => {
  const lifecycle = new Lifecycle(quiet);
  const ends: string[] = [];
  const gate = Promise.withResolvers<void>();
  const starting = lifecycle.start("slow", {
    start: () => gate.promise,
    end: () => void ends.push("slow"),
  });
  const stopped = lifecycle.stop(LONG);
  gate.resolve();
  await expect(starting).rejects.toThrow("the program is stopping");
  await stopped;
  expect(ends).toEqual(["slow"]);
  await expect(part(lifecycle, ends, "late")).rejects.toThrow("the program is stopping");
});

test("the first signal stops, the same Ctrl-C passed on by npm does nothing, a second one forces", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const calls: string[] = [];
  const source = new EventEmitter();
  onSignals(
    (signal) => calls.push(signal),
    () => calls.push("force"),
    source,
  );
  source.emit("SIGINT", "SIGINT");
  source.emit("SIGINT", "SIGINT");
  expect(calls).toEqual(["SIGINT"]);
  vi.advanceTimersByTime(1_000);
  source.emit("SIGTERM", "SIGTERM");
  expect(calls).toEqual(["SIGINT", "force"]);
  vi.useRealTimers();
});
