import { mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { Layout } from "../../../services/orchestrator/engines/volumes/layout.ts";
import { OpenVolumes } from "../../../services/orchestrator/engines/volumes/open-volumes.ts";
import { createVolume, descriptorsBelow, never, temporary, whyNot } from "./support.ts";

const LONG_MS = 10 * 60_000;

/** Folders as volumes have them. */
async function createFolders(count: number) {
  const root = await temporary();
  const folders = Array.from({ length: count }, (_, i) => join(root, String(i)));
  for (const folder of folders) {
    await mkdir(join(folder, "files"), { recursive: true });
    await mkdir(join(folder, "staging"));
  }
  return { root, folders };
}

it("A volume is opened once for all who use it, and for who comes after them", async () => {
  const { root, folders } = await createFolders(1);
  const [folder = ""] = folders;
  const volumes = new OpenVolumes(LONG_MS);
  const [a, b] = [await volumes.take(folder), await volumes.take(folder)];
  expect(b.files).toBe(a.files);
  expect(await b.staging()).toBe(await a.staging());
  for (const each of [a, b]) await each[Symbol.asyncDispose]();
  expect(descriptorsBelow(root).length).toBe(2);
  const after = await volumes.take(folder);
  expect(after.files).toBe(a.files);
  await volumes.giveUp(folder);
  // Whoever is at it goes on.
  expect((await after.files.stat({ bigint: true })).isDirectory()).toBe(true);
  await after[Symbol.asyncDispose]();
  expect(descriptorsBelow(root)).toEqual([]);
});

it("Volumes that nobody uses are kept for a while, and not many of them", async () => {
  const { root, folders } = await createFolders(70);
  const briefly = new OpenVolumes(1);
  for (const folder of folders) await (await briefly.take(folder))[Symbol.asyncDispose]();
  await expect.poll(() => descriptorsBelow(root)).toEqual([]);
  const volumes = new OpenVolumes(LONG_MS);
  for (const folder of folders) await (await volumes.take(folder))[Symbol.asyncDispose]();
  const kept = descriptorsBelow(root);
  expect(kept.length).toBe(64);
  expect(kept).not.toContain(join(folders[0] ?? "", "files"));
  for (const folder of folders) await volumes.giveUp(folder);
  expect(descriptorsBelow(root)).toEqual([]);
});

it("A volume that is open is not believed to be where it was", async () => {
  const { root, folders } = await createFolders(2);
  const [folder = "", other = ""] = folders;
  const volumes = new OpenVolumes(LONG_MS);
  const before = await volumes.take(folder);
  await rename(folder, join(root, "aside"));
  await rename(other, folder);
  const after = await volumes.take(folder);
  expect(after.files.fd).not.toBe(before.files.fd);
  for (const each of [before, after]) await each[Symbol.asyncDispose]();
  expect(descriptorsBelow(root)).toEqual([join(folder, "files")]);
  await rename(folder, other);
  await expect(volumes.take(folder)).rejects.toThrow("ENOENT");
  expect(descriptorsBelow(root)).toEqual([]);
});

it("A volume that another process removes is gone for who had it open", async () => {
  const { root, key, put, files, volumes, allClosed } = await createVolume();
  await put("f", "x");
  const layout = new Layout(root);
  const held = await layout.open(key);
  await createDirectoryVolumes({ root }).remove(key, never);

  expect(await whyNot(layout.open(key))).toBe("missing");
  expect(await whyNot(files.stat(key, "f"))).toBe("missing");
  expect(await whyNot(put("g", "x"))).toBe("missing");
  expect(await volumes.measure(key, never)).toEqual({ bytes: 0n, entries: 0 });
  expect(await readdir(join(root, key.orgId))).toEqual([key.volumeId]);
  await held[Symbol.asyncDispose]();
  await allClosed();
});
