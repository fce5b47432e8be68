import { execFileSync } from "node:child_process";
import { link, mkdir, readdir, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { Ladder } from "../../../services/orchestrator/engines/volumes/ladder.ts";
import { Layout } from "../../../services/orchestrator/engines/volumes/layout.ts";
import { admitAll, createVolume, descriptorsBelow, never, whyNot } from "./support.ts";

const DIG = join(import.meta.dirname, "dig.ts");
const asRoot = process.getuid?.() === 0;

describe("What only a sandbox makes", () => {
  it("may have names of any bytes", async () => {
    const { files, key, inside, volumes, folder } = await createVolume();
    await mkdir(join(inside, "d"));
    for (let byte = 1; byte < 256; byte++)
      if (byte !== 0x2f && byte !== 0x2e)
        await writeFile(Buffer.concat([Buffer.from(`${inside}/d/`), Buffer.from([byte])]), "x");
    await mkdir(Buffer.concat([Buffer.from(`${inside}/d/`), Buffer.from([0xff, 0xfe])]));
    await writeFile(
      Buffer.concat([Buffer.from(`${inside}/d/`), Buffer.from([0xff, 0xfe, 0x2f, 0xc0])]),
      "x",
    );

    expect((await Array.fromAsync(files.list(key, "d", never))).flat().length).toBe(125);
    expect(await volumes.measure(key, never)).toEqual({ bytes: 254n, entries: 256 });
    expect(await whyNot(Array.fromAsync(volumes.walk(key, "d", never)))).toBe("conflict");
    await files.copy(key, "d", "e", admitAll, never);
    expect((await readdir(join(inside, "e"), { encoding: "buffer" })).length).toBe(254);
    await files.remove(key, "d", true, never);
    await files.remove(key, "e", true, never);
    expect([...(await readdir(inside)), ...(await readdir(join(folder, "staging")))]).toEqual([]);
  });

  it("may lie deeper than a path can say", { timeout: 120_000 }, async () => {
    const { files, key, inside, volumes, folder, root, allClosed } = await createVolume();
    await mkdir(join(inside, "deep"));
    execFileSync(process.execPath, [DIG, join(inside, "deep"), "700"]);
    const open: number[] = [];
    const timer = setInterval(() => open.push(descriptorsBelow(root).length), 5);
    onTestFinished(() => clearInterval(timer));

    const { bytes, entries } = await volumes.measure(key, never);
    expect([Number(bytes), entries]).toEqual([700 * 5, 1 + 700 * 4]);
    await files.copy(key, "deep", "copy", admitAll, never);
    const twice = await volumes.measure(key, never);
    expect([Number(twice.bytes), twice.entries]).toEqual([2 * 700 * 5, 2 * (1 + 700 * 4)]);
    await files.remove(key, "copy", true, never);
    expect(await readdir(inside)).toEqual(["deep"]);
    await volumes.remove(key, never);

    expect(await readdir(join(folder, ".."))).toEqual([key.volumeId]);
    expect(Math.max(...open)).toBeGreaterThan(10);
    expect(Math.max(...open)).toBeLessThan(150);
    clearInterval(timer);
    await allClosed();
  });

  it("is not opened if it is no file", { timeout: 60_000 }, async () => {
    const { files, key, inside, volumes, list, allClosed } = await createVolume();
    execFileSync("mkfifo", [join(inside, "pipe")]);
    if (asRoot) execFileSync("mknod", [join(inside, "device"), "c", "1", "5"]);
    const server = createServer().listen(join(inside, "socket"));
    onTestFinished(() => void server.close());
    await expect.poll(() => readdir(inside)).toContain("socket");
    const kinds = (await readdir(inside)).sort();

    for (const path of kinds) {
      expect(await whyNot(files.read(key, path, { last: 1n }))).toBe("missing");
      expect(await whyNot(files.stat(key, path))).toBe("missing");
      expect(await whyNot(files.copy(key, path, "x", admitAll, never))).toBe("missing");
      expect(await whyNot(volumes.locate(key, path))).toBe("missing");
    }
    expect(await list("/")).toEqual([]);
    expect(await Array.fromAsync(volumes.walk(key, "/", never))).toHaveLength(1);
    expect(await volumes.measure(key, never)).toEqual({ bytes: 0n, entries: kinds.length });
    for (const path of kinds) await files.rename(key, path, `moved/${path}`);
    await files.remove(key, "moved", true, never);
    expect(await readdir(inside)).toEqual([]);
    await allClosed();
  });

  it.skipIf(!asRoot)("is not what was mounted over it on the host", async () => {
    const { inside, get, list, whyNotRead, volumes, key } = await withMount();
    expect(await whyNotRead("mount/file")).toBe("outside");
    expect(await whyNot(list("mount"))).toBe("outside");
    expect((await list("/")).map(({ path }) => path)).toEqual(["/beside"]);
    expect(await get("beside")).toBe("x");
    expect((await volumes.measure(key, never)).bytes).toBe(1n);
    await expect(volumes.remove(key, never)).rejects.toThrow();
    expect(await readdir(join(inside, "mount")).catch(() => ["moved"])).not.toEqual([]);
  });
});

async function withMount() {
  const volume = await createVolume();
  const at = join(volume.inside, "mount");
  await volume.put("beside", "x");
  await mkdir(at);
  execFileSync("mount", ["-t", "tmpfs", "none", at]);
  const gone = `for m in $(grep -F "$0" /proc/self/mounts | cut -d' ' -f2); do umount "$m"; done`;
  onTestFinished(() => void execFileSync("sh", ["-c", gone, volume.root]));
  await writeFile(join(at, "file"), "mounted");
  return { ...volume, whyNotRead: (path: string) => whyNot(volume.get(path)) };
}

describe("A measurement", () => {
  it("counts each file once, without its holes", async () => {
    const { put, inside, volumes, key } = await createVolume();
    await put("d/a", Buffer.alloc(10_000, 1));
    await put("b", Buffer.alloc(4096, 1));
    for (const name of ["l1", "d/l2", "l3"]) await link(join(inside, "d/a"), join(inside, name));
    await put("holes", Buffer.alloc(4096, 1));
    await truncate(join(inside, "holes"), 2 ** 33);
    await symlink("b", join(inside, "link"));

    const { bytes, entries } = await volumes.measure(key, never);

    expect(bytes).toBe(10_000n + 4096n + 4096n);
    expect(entries).toBe(5);
  });

  it("of a volume that is not there is nothing, and makes none", async () => {
    const { volumes, key, root } = await createVolume();
    const other = { ...key, volumeId: key.volumeId.replace(/^./, (c) => (c === "0" ? "1" : "0")) };
    expect(await volumes.measure(other, never)).toEqual({ bytes: 0n, entries: 0 });
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
    await volumes.remove(key, never);
    expect(await volumes.measure(key, never)).toEqual({ bytes: 0n, entries: 0 });
  });

  it("ends with its signal", async () => {
    const { put, volumes, key, allClosed } = await createVolume();
    await put("a/b/c/d", "x");
    const aborted = AbortSignal.abort(new Error("no time"));
    await expect(volumes.measure(key, aborted)).rejects.toThrow("no time");
    await allClosed();
  });
});

describe("A ladder", () => {
  it("goes back up through directories that have other names by now", async () => {
    const { inside, key, root, put } = await createVolume();
    const deep = Array.from({ length: 300 }, (_, i) => `d${i}`);
    await put([...deep, "f"].join("/"), "x");
    await using volume = await new Layout(root).open(key);
    await using ladder = new Ladder(volume.files, volume.dev);
    for (const name of deep) await ladder.down(Buffer.from(name));
    const middle = join(inside, ...deep.slice(0, 101));
    await rename(middle, join(inside, "moved"));
    await symlink("/", middle);
    const held = descriptorsBelow(root).length;

    let kept = 0;
    while (ladder.names.length > 0) {
      await ladder.up();
      const isHeld = await ladder.here().then(
        () => true,
        () => false,
      );
      kept += isHeld ? 1 : 0;
    }

    // Those that it held are still those that they were; the others it looks for in vain.
    expect(held).toBeLessThan(50);
    expect(kept).toBeGreaterThan(10);
    expect(kept).toBeLessThan(300);
    await expect(ladder.up()).rejects.toThrow("above the root");
  });
});

it("is the same volume for every process on this host", async () => {
  const { root, key, put } = await createVolume();
  const other = createDirectoryVolumes({ root });
  await put("f", "x");
  expect((await other.files.stat(key, "f")).size).toBe(1n);
});
