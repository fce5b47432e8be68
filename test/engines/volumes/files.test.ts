import { execFileSync } from "node:child_process";
import {
  chmod,
  chown,
  link,
  mkdir,
  readdir,
  readFile,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { contentOf, createVolume, never, PATIENT, whyNot } from "./support.ts";

const KIB = 1024;

describe("A file of a volume", () => {
  it("is written with its parents and read again", async () => {
    const { put, get, inside, key, files } = await createVolume();

    const info = await put("/a/ü/文.txt", "hello, ", "world");

    expect(info).toMatchObject({ path: "/a/ü/文.txt", kind: "file", size: 12n, mode: 0o644 });
    expect(info).toMatchObject({ uid: 0, gid: 0 });
    expect(await get("a/ü/文.txt")).toBe("hello, world");
    expect(await readFile(join(inside, "a/ü/文.txt"), "utf8")).toBe("hello, world");
    const accessedAt = expect.any(Date);
    expect(await files.stat(key, "a//ü/./文.txt")).toEqual({ ...info, accessedAt });
    expect((await stat(join(inside, "a"))).mode & 0o7777).toBe(0o755);
  });

  it("may be empty", async () => {
    const { put, get, files, key } = await createVolume();
    await put("empty");
    await put("empty-chunk", "");

    expect(await get("empty")).toBe("");
    expect((await files.stat(key, "empty-chunk")).size).toBe(0n);
  });

  it("is read in parts", async () => {
    const { put, files, key, get } = await createVolume();
    await put("f", "0123456789");
    const part = async (range: Parameters<typeof get>[1]) => {
      const { offset, length, close } = await files.read(key, "f", range ?? { last: 0n });
      await close();
      return [Number(offset), Number(length), await get("f", range)];
    };

    expect(await part({ offset: 2n, length: 3n })).toEqual([2, 3, "234"]);
    expect(await part({ offset: 8n, length: 30n })).toEqual([8, 2, "89"]);
    expect(await part({ offset: 4n, length: null })).toEqual([4, 6, "456789"]);
    expect(await part({ offset: 40n, length: null })).toEqual([10, 0, ""]);
    expect(await part({ offset: 4n, length: 0n })).toEqual([4, 0, ""]);
    expect(await part({ last: 3n })).toEqual([7, 3, "789"]);
    expect(await part({ last: 30n })).toEqual([0, 10, "0123456789"]);
    expect(await part({ last: 0n })).toEqual([10, 0, ""]);
  });

  it("comes in large pieces whatever it was written in", async () => {
    const { put, files, key } = await createVolume();
    const bytes = Buffer.from(Array.from({ length: 1300 * KIB }, (_, i) => (i * 7) % 251));
    const small = Array.from({ length: 1300 }, (_, i) => bytes.subarray(i * KIB, (i + 1) * KIB));
    await put("large", ...small);

    const file = await files.read(key, "large", { offset: 0n, length: null });
    const chunks = await Array.fromAsync(file.content);

    expect(Buffer.concat(chunks).equals(bytes)).toBe(true);
    expect(chunks.length).toBe(3);
    // Fresh memory each time: what was given is not written over.
    expect(new Set(chunks.map(({ buffer }) => buffer)).size).toBe(3);
  });

  it("that gets shorter while it is read is not read short", async () => {
    const { put, files, key, inside } = await createVolume();
    await put("f", Buffer.alloc(1300 * KIB));
    const file = await files.read(key, "f", { offset: 0n, length: null });
    await writeFile(join(inside, "f"), "short");

    expect(await whyNot(Array.fromAsync(file.content))).toBe("conflict");
  });

  it("that grows while it is read is read as long as it was", async () => {
    const { put, files, key, inside } = await createVolume();
    await put("f", "0123");
    const file = await files.read(key, "f", { offset: 0n, length: null });
    await writeFile(join(inside, "f"), "0123456");

    expect(Buffer.concat(await Array.fromAsync(file.content)).toString()).toBe("0123");
  });

  it("is closed when it is read, left, or not wanted", async () => {
    const { put, files, key, descriptors, allClosed } = await createVolume();
    await put("f", Buffer.alloc(1300 * KIB));
    const open = () => files.read(key, "f", { offset: 0n, length: null });

    const [read, left, unread, closedLate] = [
      await open(),
      await open(),
      await open(),
      await open(),
    ];
    await expect.poll(() => descriptors().length, PATIENT).toBe(4);
    for await (const _ of read.content);
    for await (const _ of left.content) break;
    await unread.close();
    await unread.close();
    const pending = closedLate.content[Symbol.asyncIterator]().next();
    await closedLate.close();
    await pending;

    await allClosed();
    await expect(Array.fromAsync(unread.content)).rejects.toThrow("closed");
  });

  it("has another version once its content may be another", async () => {
    const { put, files, key, inside } = await createVolume();
    await put("f", "one");
    const version = async () => {
      const file = await files.read(key, "f", { last: 0n });
      await file.close();
      return file.version;
    };
    // As long as the clock of files may stand still, none is given twice.
    let before = await version();
    expect(await version()).not.toBe(before);
    const isSettled = async () => {
      const last = before;
      before = await version();
      return before === last;
    };
    await expect.poll(isSettled).toBe(true);
    expect(before).toMatch(/^[\w.-]+$/);

    await writeFile(join(inside, "f"), "two");
    await utimes(join(inside, "f"), 1, 1);

    expect(await version()).not.toBe(before);
  });

  it("that replaces another keeps its mode and owner, and nobody's rights", async () => {
    const { put, get, inside } = await createVolume();
    await put("f", "one");
    await chown(join(inside, "f"), 1234, 5678);
    await chmod(join(inside, "f"), 0o6751);
    await link(join(inside, "f"), join(inside, "other-name"));

    const info = await put("f", "two");

    expect(info).toMatchObject({ mode: 0o751, uid: 1234, gid: 5678 });
    expect(await get("f")).toBe("two");
    expect(await get("other-name")).toBe("one");
  });

  it("is replaced where a link leads", async () => {
    const { put, get, inside } = await createVolume();
    await mkdir(join(inside, "d"));
    await symlink("d/file", join(inside, "link"));
    await put("link", "one");
    await put("link", "two");

    expect(await get("d/file")).toBe("two");
    expect((await readdir(inside)).sort()).toEqual(["d", "link"]);
  });

  it("that is not given to its end leaves nothing", async () => {
    const { put, get, files, key, inside, folder, allClosed } = await createVolume();
    await put("f", "before");
    const halfway = async function* () {
      yield Buffer.alloc(1300 * KIB);
      throw Object.assign(new Error("hung up"), { code: "ENOENT", syscall: "read" });
    };

    // It is the caller's own error, whatever it looks like.
    await expect(files.write(key, "f", halfway(), async () => {})).rejects.toThrow("hung up");
    await expect(files.write(key, "new/f", halfway(), async () => {})).rejects.toThrow("hung up");

    expect(await get("f")).toBe("before");
    expect(await readdir(inside)).toEqual(["f"]);
    expect(await readdir(join(folder, "staging"))).toEqual([]);
    await allClosed();
  });

  it("that is not admitted is not written", async () => {
    const { files, key, inside, folder } = await createVolume();
    const asked: bigint[] = [];
    let closed = false;
    const content = async function* () {
      try {
        for (;;) yield Buffer.alloc(512 * KIB);
      } finally {
        closed = true;
      }
    };
    const admit = async (bytes: bigint) => {
      asked.push(bytes);
      if (bytes > 1024n * 1024n) throw new Error("no room");
    };

    await expect(files.write(key, "f", content(), admit)).rejects.toThrow("no room");

    expect(asked).toEqual([512n * 1024n, 1024n * 1024n, 1536n * 1024n]);
    expect(closed).toBe(true);
    expect([...(await readdir(inside)), ...(await readdir(join(folder, "staging")))]).toEqual([]);
  });

  it("is not written over a directory, through a file, or over a pipe", async () => {
    const { put, inside, key, files } = await createVolume();
    await put("d/f", "x");
    let taken = false;
    const content = async function* () {
      taken = true;
      yield* contentOf(["x"]);
    };
    const write = (path: string) => whyNot(files.write(key, path, content(), async () => {}));
    execFileSync("mkfifo", [join(inside, "pipe")]);

    for (const path of ["d", "/", "d/f/g", "d/f/g/h", "pipe"])
      expect(await write(path), path).toBe("conflict");
    // Nor is anything taken for it.
    expect(taken).toBe(false);
  });

  it("has times that a timestamp can say", async () => {
    const { put, files, key, inside } = await createVolume();
    await put("f", "x");
    await utimes(join(inside, "f"), new Date(-1e12), 1.5e9 + 0.25);

    const info = await files.stat(key, "f");

    expect(info.accessedAt).toEqual(new Date(-1e12));
    expect(info.modifiedAt).toEqual(new Date(1.5e12 + 250));
    expect(info.createdAt?.getTime()).toBeGreaterThan(1.6e12);
  });

  it("can be as large as it says without being so", async () => {
    const { files, key, inside, volumes } = await createVolume();
    await writeFile(join(inside, "holes"), "");
    await truncate(join(inside, "holes"), 2 ** 43);

    const file = await files.read(key, "holes", { last: 3n });
    expect([...Buffer.concat(await Array.fromAsync(file.content))]).toEqual([0, 0, 0]);
    expect(file.offset).toBe(2n ** 43n - 3n);
    const { bytes } = await volumes.measure(key, never);
    expect(bytes).toBe(0n);
  });
});
