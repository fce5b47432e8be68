import { describe, expect, it } from "vitest";
import { shareLook, shareLooks } from "../../../services/orchestrator/share.ts";

/** Looks that end when they are told to. */
function controlled() {
  const begun: PromiseWithResolvers<string>[] = [];
  const look = () => {
    const one = Promise.withResolvers<string>();
    begun.push(one);
    return one.promise;
  };
  return { begun, look };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("A look that is shared", () => {
  it("is another one for those who ask while one is under way", async () => {
    const { begun, look } = controlled();
    const ask = shareLook(look);
    const first = ask();
    const [second, third] = [ask(), ask()];
    expect(begun.length).toBe(1);
    begun[0]?.resolve("before they asked");
    expect(await first).toBe("before they asked");
    await settled();
    expect(begun.length).toBe(2);
    const fourth = ask();
    begun[1]?.resolve("after they asked");

    expect(await Promise.all([second, third])).toEqual(["after they asked", "after they asked"]);
    await settled();
    begun[2]?.resolve("still later");
    expect(await fourth).toBe("still later");
    expect(begun.length).toBe(3);
  });

  it("fails for those alone who shared it", async () => {
    const { begun, look } = controlled();
    const ask = shareLook(look);
    const [first, second] = [ask(), ask()];
    begun[0]?.reject(new Error("no"));
    await expect(first).rejects.toThrow("no");
    await settled();
    begun[1]?.resolve("yes");
    expect(await second).toBe("yes");
  });
});

it("looks at different things are not shared", async () => {
  const asked: string[] = [];
  const find = shareLooks(async (...names: [string, string]) => {
    asked.push(names.join(" "));
    await settled();
    return asked.length;
  });
  const found = await Promise.all([find("a", "b"), find("a", "c"), find("a", "b"), find("a", "b")]);
  expect(asked).toEqual(["a b", "a c", "a b"]);
  expect(found[2]).toBe(found[3]);
});
