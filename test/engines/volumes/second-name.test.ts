import {
  appendFile,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  unlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { v7 as uuid } from "uuid";
import { afterAll, expect, it } from "vitest";
import { FileFault } from "../../../services/orchestrator/engines/volume-store.ts";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";

const root = await mkdtemp(join(tmpdir(), "sandgate-names-"));
const volumes = createDirectoryVolumes({ root });
const key = { orgId: uuid(), volumeId: uuid() };
const staging = join(root, key.orgId, key.volumeId, "staging");
afterAll(() => rm(root, { recursive: true }));

async function located(name: string) {
  const path = join(await volumes.directory(key), name);
  await writeFile(path, "content");
  const { handle } = await volumes.locate(key, name);
  return { path, handle };
}

it("is the file itself, whatever lies at its own name, and is taken away", async () => {
  const { path, handle } = await located("a");
  const { ino } = await stat(path);
  const seen = await volumes.withSecondName(key, handle, async (second) => {
    await unlink(path);
    await writeFile(path, "another");
    await appendFile(second, " and more");
    expect((await stat(second)).ino).toBe(ino);
    expect(second.startsWith(`${staging}/`)).toBe(true);
    return readFile(second, "utf8");
  });
  expect(seen).toBe("content and more");
  await handle.close();
  expect(await readFile(path, "utf8")).toBe("another");
  expect(await readdir(staging)).toEqual([]);
});

it("is taken away where what is done with it fails, or somebody was faster", async () => {
  const { handle } = await located("b");
  const fail = async () => {
    throw new Error("it failed");
  };
  await expect(volumes.withSecondName(key, handle, fail)).rejects.toThrow("it failed");
  expect(await readdir(staging)).toEqual([]);
  await volumes.withSecondName(key, handle, unlink);
  // What a dead process leaves is cleared away before a measurement.
  const leave = (second: string) =>
    volumes.measure(key, new AbortController().signal).then(() => stat(second));
  await expect(volumes.withSecondName(key, handle, leave)).rejects.toThrow(/ENOENT/);
  await handle.close();
});

it("is not given to a file that is gone", async () => {
  const { path, handle } = await located("c");
  await unlink(path);
  const ask = volumes.withSecondName(key, handle, async () => undefined);
  await expect(ask).rejects.toThrow(FileFault);
  await handle.close();
});
