import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { keepSecretFile, prepareDataDir } from "../../runtime/data-dir.ts";
import { StartupError } from "../../runtime/errors.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sandgate-data-"));
});

afterEach(() => rm(folder, { recursive: true }));

test("makes a folder with its parents, and takes one that is there", async () => {
  const dir = join(folder, "a/b");
  await prepareDataDir(dir);
  await prepareDataDir(dir);
  expect((await stat(dir)).isDirectory()).toBe(true);
});

test.each(["/proc/sandgate/data", "/dev/null/data", "/dev/null"])(
  "refuses %s with a sentence",
  async (dir) => {
    await expect(prepareDataDir(dir)).rejects.toThrow(StartupError);
    await expect(prepareDataDir(dir)).rejects.toThrow(
      /^The folder \S+ \(DATA_DIR\) cannot be written: [a-z ]+$/,
    );
  },
);

test("a secret is made once, for its owner only", async () => {
  const path = join(folder, "secret");
  expect(await keepSecretFile(path, () => "one")).toBe("one");
  expect(await keepSecretFile(path, () => "two")).toBe("one");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test("of several that make it at once, all get the same", async () => {
  const path = join(folder, "secret");
  const got = await Promise.all(
    Array.from({ length: 20 }, (_, i) => keepSecretFile(path, () => `${i}`)),
  );
  expect(new Set(got).size).toBe(1);
  expect(await readFile(path, "utf8")).toBe(`${got[0]}\n`);
  expect(await readdir(folder)).toEqual(["secret"]);
});

test("says which file it cannot make", async () => {
  await writeFile(join(folder, "file"), "");
  const path = join(folder, "file", "secret");
  await expect(keepSecretFile(path, () => "x")).rejects.toThrow(
    new StartupError(`The file ${path} cannot be read or made: not a directory`),
  );
});
