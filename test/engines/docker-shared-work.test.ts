import { describe, expect, it } from "vitest";
import { SharedWork, Turns } from "../../services/orchestrator/engines/docker/shared-work.ts";
import { UNHURRIED } from "./allocations.ts";

describe("shared work", () => {
  const unending = (seen: AbortSignal[]) => (signal: AbortSignal) => {
    seen.push(signal);
    return new Promise<string>((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  };

  it("is done once for all who ask at the same time, and again for who asks later", async () => {
    const shared = new SharedWork<number>();
    let done = 0;
    const work = async () => ++done;
    const ask = () => shared.do("key", UNHURRIED, work);
    expect(await Promise.all([ask(), ask()])).toEqual([1, 1]);
    expect(await ask()).toBe(2);
    expect(await Promise.all([ask(), shared.do("other", UNHURRIED, work)])).toEqual([3, 4]);
  });

  it("fails for all, and is forgotten", async () => {
    const shared = new SharedWork<number>();
    const fail = () => shared.do("key", UNHURRIED, () => Promise.reject(new Error("no")));
    const results = await Promise.allSettled([fail(), fail()]);
    expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(await shared.do("key", UNHURRIED, async () => 1)).toBe(1);
  });

  it("goes on while somebody wants it, and is aborted by the last who leaves", async () => {
    const shared = new SharedWork<string>();
    const seen: AbortSignal[] = [];
    const [first, second] = [new AbortController(), new AbortController()];
    const one = shared.do("key", first.signal, unending(seen));
    const two = shared.do("key", second.signal, unending(seen));
    first.abort(new Error("first leaves"));
    await expect(one).rejects.toThrow("first leaves");
    expect(seen.map(({ aborted }) => aborted)).toEqual([false]);
    second.abort(new Error("second leaves"));
    await expect(two).rejects.toThrow("second leaves");
    expect(seen.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await shared.do("key", UNHURRIED, async () => "anew")).toBe("anew");
  });
});

describe("turns", () => {
  it("let in one at a time, in order, also after a failure; other keys do not wait", async () => {
    const turns = new Turns();
    const log: string[] = [];
    const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
    const first = turns.take("key", async () => {
      await held;
      log.push("first");
      throw new Error("first fails");
    });
    const second = turns.take("key", async () => log.push("second"));
    await turns.take("other", async () => log.push("other"));
    letGo();
    await expect(first).rejects.toThrow("first fails");
    await second;
    expect(log).toEqual(["other", "first", "second"]);
  });
});
