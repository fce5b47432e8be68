import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createVolume, whyNot } from "./support.ts";

describe("A path", () => {
  it("that is none is refused by every call", async () => {
    const { files, volumes, key, put, list } = await createVolume();
    const signal = new AbortController().signal;
    const admit = async () => {};
    for (const path of ["a\0b", "x".repeat(256), "y/".repeat(2049), "\ud800", "..", "a/../../b"]) {
      await files.makeDirectory(key, "a");
      const all = [
        files.stat(key, path),
        files.read(key, path, { last: 1n }),
        put(path, "x"),
        list(path),
        files.makeDirectory(key, path),
        files.copy(key, path, "to", admit, signal),
        files.copy(key, "a", path, admit, signal),
        files.rename(key, path, "to"),
        files.rename(key, "a", path),
        files.remove(key, path, true, signal),
        volumes.locate(key, path),
        Array.fromAsync(volumes.walk(key, path, signal)),
      ];
      for (const refusal of await Promise.all(all.map(whyNot))) expect(refusal).toBe("outside");
    }
  });

  it("may have a name of 255 bytes, and 2,000 names", async () => {
    const { put, get, files, key, allClosed } = await createVolume();
    const long = `${"ü".repeat(127)}x`;
    const deep = "d/".repeat(2000);
    await put(long, "long");
    await put(`${deep}f`, "deep");

    expect(await get(long)).toBe("long");
    expect(await get(`${deep}f`)).toBe("deep");
    expect(
      (await files.stat(key, `${deep}../../f/..`).catch(() => undefined))?.kind,
    ).toBeUndefined();
    expect((await files.stat(key, `${"d/".repeat(1000)}${"../".repeat(300)}`)).path).toBe(
      `/${"d/".repeat(700).slice(0, -1)}`,
    );
    await allClosed();
  });

  it("goes through links, but not for ever", async () => {
    const { put, get, inside, files, key } = await createVolume();
    await put("d/f", "x");
    await symlink("l1", join(inside, "l1"));
    for (let i = 2; i <= 60; i++) await symlink(i === 2 ? "d" : `l${i - 1}`, join(inside, `l${i}`));

    expect(await get("l41/f")).toBe("x");
    expect(await whyNot(get("l42/f"))).toBe("missing");
    expect(await whyNot(get("l1/f"))).toBe("missing");
    expect((await files.stat(key, "l3/f")).path).toBe("/l3/f");
    expect((await files.stat(key, "l3/../d/f")).path).toBe("/d/f");
  });

  it("of links that say very much is given up", async () => {
    const { inside, get } = await createVolume();
    await mkdir(join(inside, "d"));
    const much = "d/../".repeat(800);
    await symlink(`${much}l1`, join(inside, "l0"));
    for (let i = 1; i < 30; i++) await symlink(`${much}l${i + 1}`, join(inside, `l${i}`));

    expect(await whyNot(get("l0"))).toBe("missing");
  });
});
