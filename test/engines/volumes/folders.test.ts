import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { collect, contentOf, createVolume, never, temporary, whyNot } from "./support.ts";

const HOUR_S = 3600;

describe("The folder of a volume", () => {
  it("is private but for what sandboxes see", async () => {
    const root = join(await temporary(), "not", "yet");
    const volumes = createDirectoryVolumes({ root });
    const key = { orgId: randomUUID(), volumeId: randomUUID() };
    const keys = Array.from({ length: 5 }, () => key);
    const umask = process.umask(0o077);
    const paths = await Promise.all(keys.map((key) => volumes.directory(key))).finally(() =>
      process.umask(umask),
    );

    expect(new Set(paths)).toEqual(new Set([join(root, key.orgId, key.volumeId, "files")]));
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
    const modes: Record<string, number> = {
      "": 0o700,
      [key.orgId]: 0o700,
      [join(key.orgId, key.volumeId)]: 0o700,
      [join(key.orgId, key.volumeId, "staging")]: 0o700,
      [join(key.orgId, key.volumeId, "files")]: 0o777,
    };
    for (const [path, mode] of Object.entries(modes))
      expect((await stat(join(root, path))).mode & 0o7777, path).toBe(mode);
    // It is its owner's from then on.
    await chmod(paths[0] ?? "", 0o755);
    await volumes.directory(key);
    expect((await stat(paths[0] ?? "")).mode & 0o7777).toBe(0o755);
  });

  it("is never one of a name that is no UUID", async () => {
    const { volumes, root, key } = await createVolume();
    for (const bad of ["..", "", "a/b", key.orgId.toUpperCase().replace(/[0-9]/g, "A")])
      for (const wrong of [
        { ...key, orgId: bad },
        { ...key, volumeId: bad },
      ]) {
        await expect(volumes.directory(wrong)).rejects.toThrow("UUID");
        await expect(volumes.remove(wrong, never)).rejects.toThrow("UUID");
      }
    expect(await readdir(root)).toEqual([key.orgId]);
  });

  it("loses what dead processes left, and nothing else", async () => {
    const { folder, volumes, key } = await createVolume();
    const staging = join(folder, "staging");
    const old = Date.now() / 1000 - HOUR_S - 60;
    await mkdir(join(staging, "upload-old", "tree"), { recursive: true });
    await mkdir(join(staging, "upload-new"));
    await mkdir(join(staging, "removed-now", "x"), { recursive: true });
    await writeFile(join(staging, "upload-file"), "x");
    for (const name of ["upload-old", "upload-file"]) await utimes(join(staging, name), old, old);

    await volumes.measure(key, never);

    expect(await readdir(staging)).toEqual(["upload-new"]);
  });

  it("is left without a trace by writers in it, and by those behind it", async () => {
    const { put, files, key, inside, volumes } = await createVolume();
    await put("d/f", "x");
    await symlink("../../..", join(inside, "d", "link"));
    await put("keep", "y");
    // Somebody has a foot in the directory, and goes on to write there for a while.
    const script = `cd "$0/d" && echo && i=0 && while [ $i -lt 2000 ]; do i=$((i+1)); mkdir -p s$i/t && : > s$i/t/f; done 2>/dev/null`;
    const child = spawn("sh", ["-c", script, inside], { stdio: ["ignore", "pipe", "inherit"] });
    await new Promise((resolve) => child.stdout.once("data", resolve));

    await files.remove(key, "d", true, never);

    expect(await readdir(inside)).toEqual(["keep"]);
    await new Promise((resolve) =>
      child.exitCode === null ? child.once("exit", resolve) : resolve(0),
    );
    await volumes.measure(key, never);
    expect(await readdir(join(inside, "..", "staging"))).toEqual([]);
  });
});

describe("A volume that is removed", () => {
  it("is gone with all, and never made again", async () => {
    const { put, get, files, volumes, key, folder, root, allClosed } = await createVolume();
    await put("a/b/c", "x");
    const file = await files.read(key, "a/b/c", { last: 1n });
    await volumes.remove(key, never);
    await volumes.remove(key, never);

    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
    expect((await stat(folder)).size).toBe(0);
    const late = [
      get("a/b/c"),
      put("late", "x"),
      files.makeDirectory(key, "/"),
      volumes.directory(key),
    ];
    for (const refusal of await Promise.all(late.map(whyNot))) expect(refusal).toBe("missing");
    // Whoever has it open reads on.
    expect((await collect(file.content)).toString()).toBe("x");
    await allClosed();
  });

  it("may be one that never was, and that no late request makes", async () => {
    const { volumes, key, root, files } = await createVolume();
    for (const orgId of [key.orgId, randomUUID()]) {
      const other = { orgId, volumeId: randomUUID() };
      await volumes.remove(other, never);
      expect(await whyNot(files.makeDirectory(other, "late"))).toBe("missing");
      expect((await stat(join(root, orgId, other.volumeId))).isFile()).toBe(true);
      expect((await stat(join(root, orgId))).mode & 0o777).toBe(0o700);
    }
  });

  it("is removed to its end after a crash at any moment", async () => {
    const { volumes, key, folder, put, root } = await createVolume();
    await put("a/b/c", "x");
    // Moved aside, taken apart in part, and made anew by somebody late.
    await mkdir(`${folder}.removed`);
    await rename(folder, join(`${folder}.removed`, "half"));
    await mkdir(join(`${folder}.removed`, "removed-x", "files"), { recursive: true });
    await volumes.directory(key);
    await volumes.remove(key, never);
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
    // Marked, but not taken apart.
    await mkdir(join(`${folder}.removed`, "half"), { recursive: true });
    await volumes.remove(key, never);
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
  });

  it("goes on where it was stopped", async () => {
    const { volumes, key, put, root } = await createVolume();
    for (let i = 0; i < 30; i++) await put(`${i}/f`, "x");
    const aborted = AbortSignal.abort(new Error("shutting down"));
    await expect(volumes.remove(key, aborted)).rejects.toThrow("shutting down");
    expect(await volumes.measure(key, never)).toEqual({ bytes: 0n, entries: 0 });
    await volumes.remove(key, never);
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
  });

  it("ends a write that is under way", async () => {
    const { volumes, key, files, root, allClosed } = await createVolume();
    const content = async function* () {
      yield* contentOf(["before"]);
      await volumes.remove(key, never);
      yield* contentOf(["after"]);
    };
    expect(await whyNot(files.write(key, "f", content(), async () => {}))).toBe("missing");
    expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
    await allClosed();
  });

  it("leaves a mark for a day", async () => {
    const { volumes, key, folder, root } = await createVolume();
    const next = { ...key, volumeId: randomUUID() };
    await volumes.remove(key, never);
    await mkdir(join(root, key.orgId, "new-left", "files"), { recursive: true });
    const old = Date.now() / 1000 - 25 * HOUR_S;
    for (const name of [folder, join(root, key.orgId, "new-left")]) await utimes(name, old, old);
    await volumes.remove(next, never);
    expect(await readdir(join(root, key.orgId))).toEqual([next.volumeId]);
  });
});
