import { execFileSync } from "node:child_process";
import {
  chmod,
  chown,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { Layout } from "../../../services/orchestrator/engines/volumes/layout.ts";
import { remove } from "../../../services/orchestrator/engines/volumes/remove.ts";
import { admitAll, createVolume, never, whyNot } from "./support.ts";

describe("A directory of a volume", () => {
  it("is listed in order, links as what they lead to", async () => {
    const { put, inside, list } = await createVolume();
    for (const name of ["b", "a", "ü", "Z", "dir/f"]) await put(name, name);
    const links = {
      link: "dir",
      "link-2": "link/f",
      dangling: "x",
      out: "/etc",
      up: "../x",
      loop: "loop",
    };
    for (const [name, target] of Object.entries(links)) await symlink(target, join(inside, name));
    execFileSync("mkfifo", [join(inside, "pipe")]);
    await writeFile(Buffer.concat([Buffer.from(`${inside}/`), Buffer.from([0xff])]), "no UTF-8");

    const seen = (await list("/")).map(({ path, kind, size }) => `${path} ${kind} ${size}`);

    const size = (await stat(join(inside, "dir"))).size;
    expect(seen).toEqual([
      "/Z file 1",
      "/a file 1",
      "/b file 1",
      `/dir directory ${size}`,
      `/link directory ${size}`,
      "/link-2 file 5",
      "/ü file 2",
    ]);
    expect((await list("link")).map(({ path }) => path)).toEqual(["/link/f"]);
    expect((await list("link/../dir")).map(({ path }) => path)).toEqual(["/dir/f"]);
  });

  it("is listed in batches however large it is", { timeout: 60_000 }, async () => {
    const { files, key, inside, allClosed, list, volumes } = await createVolume();
    execFileSync("sh", ["-c", `cd "$0" && seq 1 12000 | xargs touch`, inside]);

    const batches = await Array.fromAsync(files.list(key, "/", never));

    expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(512);
    expect(new Set(batches.flat().map(({ path }) => path)).size).toBe(12_000);
    expect(await volumes.measure(key, never)).toEqual({ bytes: 0n, entries: 12_000 });
    for await (const _ of files.list(key, "/", never)) break;
    await files.remove(key, "12000", false, never);
    expect((await list("/")).length).toBe(11_999);
    const aborted = AbortSignal.abort(new Error("hung up"));
    await expect(Array.fromAsync(files.list(key, "/", aborted))).rejects.toThrow("hung up");
    await allClosed();
  });

  it("that is none is no directory", async () => {
    const { put, list } = await createVolume();
    await put("f", "x");
    expect(await whyNot(list("f"))).toBe("conflict");
    expect(await whyNot(list("f/g"))).toBe("missing");
    expect(await whyNot(list("x"))).toBe("missing");
    expect(await list("/").then((infos) => infos.length)).toBe(1);
  });

  it("is made with its parents, and left as it is", async () => {
    const { put, files, key, inside, get } = await createVolume();
    await files.makeDirectory(key, "a/b");
    await put("a/b/f", "x");
    await chmod(join(inside, "a"), 0o700);
    await symlink("a", join(inside, "link"));
    await files.makeDirectory(key, "a/b");
    await files.makeDirectory(key, "link/c");
    await files.makeDirectory(key, "/");

    expect(await get("a/b/f")).toBe("x");
    expect((await stat(join(inside, "a"))).mode & 0o777).toBe(0o700);
    expect(await readdir(join(inside, "a"))).toEqual(["b", "c"]);
    expect(await whyNot(files.makeDirectory(key, "a/b/f"))).toBe("conflict");
    expect(await whyNot(files.makeDirectory(key, "a/b/f/g"))).toBe("conflict");
  });
});

describe("A copy", () => {
  it("of a tree is the same tree", async () => {
    const { put, files, key, inside, get, list } = await createVolume();
    await put("from/deep/f", "content");
    await put("from/empty");
    await mkdir(join(inside, "from/bare"));
    await symlink("../../../etc", join(inside, "from/deep/link"));
    execFileSync("mkfifo", [join(inside, "from/pipe")]);
    await writeFile(Buffer.concat([Buffer.from(`${inside}/from/`), Buffer.from([0xfe])]), "bytes");
    await chown(join(inside, "from/deep/f"), 7, 8);
    await chmod(join(inside, "from/deep/f"), 0o4711);
    await utimes(join(inside, "from/deep/f"), 1e9, new Date(-1e12));
    await chown(join(inside, "from/deep"), 9, 10);
    await chmod(join(inside, "from/deep"), 0o1770);
    await utimes(join(inside, "from/deep"), 1e9, 1.25e9);
    const facts = async (path: string) => {
      const { mode, uid, gid, mtimeMs, atimeMs } = await lstat(join(inside, path));
      return { mode, uid, gid, mtimeMs, atimeMs };
    };
    const before = [await facts("from/deep/f"), await facts("from/deep")];
    const admitted: bigint[] = [];

    await files.copy(key, "from", "new/to", async (bytes) => void admitted.push(bytes), never);

    expect([await facts("new/to/deep/f"), await facts("new/to/deep")]).toEqual(before);
    expect(await get("new/to/deep/f")).toBe("content");
    expect(await readlink(join(inside, "new/to/deep/link"))).toBe("../../../etc");
    expect((await list("new/to")).map(({ path }) => path)).toEqual([
      "/new/to/bare",
      "/new/to/deep",
      "/new/to/empty",
    ]);
    expect((await readdir(join(inside, "new/to"), { encoding: "buffer" })).length).toBe(4);
    expect(admitted.at(-1)).toBe(12n);
  });

  it("of a file takes the place of another", async () => {
    const { put, files, key, inside, get } = await createVolume();
    await put("a", "one");
    await put("d/b", "two");
    await symlink("d/b", join(inside, "link"));
    await files.copy(key, "a", "link", admitAll, never);

    expect(await get("d/b")).toBe("one");
    expect(await readlink(join(inside, "link"))).toBe("d/b");
  });

  it("keeps holes", async () => {
    const { files, key, inside, volumes } = await createVolume();
    const script = `cd "$0" && truncate -s 20M f && printf middle | dd of=f bs=1 seek=9000000 conv=notrunc status=none && truncate -s 1T all`;
    execFileSync("sh", ["-c", script, inside]);
    const before = (await volumes.measure(key, never)).bytes;
    await files.copy(key, "f", "g", admitAll, never);
    await files.copy(key, "all", "none", admitAll, never);

    execFileSync("cmp", [join(inside, "f"), join(inside, "g")]);
    expect((await stat(join(inside, "none"))).size).toBe(2 ** 40);
    // A stretch of zeros is no larger than what is copied at once.
    expect((await volumes.measure(key, never)).bytes - before).toBeLessThanOrEqual(512n * 1024n);
  });

  it("is refused where it makes no sense, and leaves nothing", async () => {
    const { put, files, key, inside, folder } = await createVolume();
    await put("d/e/f", "x");
    await put("g", "y");
    await symlink("d/e", join(inside, "link"));
    const copy = (from: string, to: string, admit = admitAll, signal = never) =>
      files.copy(key, from, to, admit, signal);
    const before = await readdir(inside, { recursive: true });

    for (const [from, to] of [
      ["d", "d/x"],
      ["d", "link/new/x"],
      ["/", "x"],
      ["d", "d"],
      ["g", "g"],
      ["d", "g"],
      ["g", "d"],
      ["d", "link"],
      ["d/e", "link/y"],
      ["g", "/"],
      ["g", "g/x"],
    ] as const)
      expect(await whyNot(copy(from, to)), `${from} ${to}`).toBe("conflict");
    expect(await whyNot(copy("missing", "new/x"))).toBe("missing");
    const full = async () => {
      throw new Error("no room");
    };
    await expect(copy("d", "new/x", full)).rejects.toThrow("no room");
    await expect(copy("g", "new/x", full)).rejects.toThrow("no room");
    const aborted = AbortSignal.abort(new Error("hung up"));
    await expect(copy("d", "new/x", admitAll, aborted)).rejects.toThrow("hung up");

    expect(await readdir(inside, { recursive: true })).toEqual(before);
    expect(await readdir(join(folder, "staging"))).toEqual([]);
  });

  it("is left alone by who clears away what nobody is at, however old what it copies is", async () => {
    const { put, files, key, inside, folder, get, volumes } = await createVolume();
    await put("f", "x");
    await utimes(join(inside, "f"), 1_000, 1_000);
    const probe = await open(join(inside, "f"));
    const measured = vi
      .spyOn(Object.getPrototypeOf(probe) as FileHandle, "datasync")
      // Its times are there, and it is not in its place.
      .mockImplementationOnce(async () => void (await volumes.measure(key, never)));
    await probe.close();

    await files.copy(key, "f", "g", admitAll, never);

    expect(measured).toHaveBeenCalled();
    measured.mockRestore();
    expect([await get("g"), (await stat(join(inside, "g"))).mtimeMs]).toEqual(["x", 1_000_000]);
    expect(await readdir(join(folder, "staging"))).toEqual([]);
  });
});

describe("A rename", () => {
  it("moves what is there, a link itself", async () => {
    const { put, files, key, inside, get } = await createVolume();
    await put("d/f", "x");
    await put("over", "y");
    await symlink("d", join(inside, "link"));
    await files.rename(key, "d/f", "new/p/g");
    await files.rename(key, "link", "other");
    await files.rename(key, "new/p/g", "over");
    await files.rename(key, "over", "over");
    await files.rename(key, "new", "d");

    expect(await get("over")).toBe("x");
    expect(await readlink(join(inside, "other"))).toBe("d");
    expect((await readdir(inside)).sort()).toEqual(["d", "other", "over"]);
    expect(await readdir(join(inside, "d"))).toEqual(["p"]);
  });

  it("is refused as the kernel does", async () => {
    const { put, files, key, inside } = await createVolume();
    await put("d/f", "x");
    await put("e/f", "x");
    await put("f", "x");
    const before = await readdir(inside, { recursive: true });

    for (const [from, to] of [
      ["d", "e"],
      ["d", "f"],
      ["f", "d"],
      ["d", "d/new/x"],
      ["d", "d/x"],
      ["/", "x"],
      ["f", "/"],
      ["d", "f/x"],
    ] as const)
      expect(await whyNot(files.rename(key, from, to)), `${from} ${to}`).toBe("conflict");
    expect(await whyNot(files.rename(key, "x", "new/y"))).toBe("missing");
    expect(await readdir(inside, { recursive: true })).toEqual(before);
  });
});

describe("A removal", () => {
  it("holds the directory that it removes from until it has", async () => {
    const { put, key, root, inside } = await createVolume();
    await put("a/b/c/f", "x");
    await using volume = await new Layout(root).open(key);
    // Whatever was to be closed too early is so by then.
    const staging = async () => {
      for (let i = 0; i < 200; i++) await stat(inside);
      return volume.staging();
    };
    await remove({ ...volume, staging }, "a/b/c", true, never);

    expect(await readdir(join(inside, "a/b"))).toEqual([]);
  });

  it("takes a file, a link, an empty directory, and more only when asked to", async () => {
    const { put, files, key, inside, folder } = await createVolume();
    await put("d/f", "x");
    await put("f", "x");
    await mkdir(join(inside, "empty"));
    await symlink("d", join(inside, "link"));
    await symlink("nowhere", join(inside, "dangling"));
    execFileSync("mkfifo", [join(inside, "pipe")]);
    const remove = (path: string, recursive = false) => files.remove(key, path, recursive, never);

    expect(await whyNot(remove("d"))).toBe("conflict");
    expect(await whyNot(remove("x", true))).toBe("missing");
    expect(await whyNot(remove("f/x", true))).toBe("missing");
    expect(await whyNot(remove("/", true))).toBe("conflict");
    for (const path of ["f", "empty", "link", "dangling", "pipe"]) await remove(path);
    expect(await readdir(inside)).toEqual(["d"]);
    await remove("d", true);

    expect(await readdir(inside)).toEqual([]);
    expect(await readdir(join(folder, "staging"))).toEqual([]);
  });
});
