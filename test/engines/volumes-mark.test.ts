import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EngineTrouble } from "../../services/orchestrator/engines/engine.ts";
import { createDirectoryVolumes } from "../../services/orchestrator/engines/volumes/directory-volumes.ts";
import {
  MARK_FILE,
  type MarkRecord,
  markVolumes,
} from "../../services/orchestrator/engines/volumes/marked-volumes.ts";

const key = {
  orgId: "019a7c1e-0000-7000-8000-000000000001",
  volumeId: "019a7c1e-0000-7000-8000-000000000002",
};
let parent: string;
let root: string;
let record: MarkRecord & { mark: string | null; claims: number };

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), "sandgate-mark-"));
  root = join(parent, "volumes");
  record = {
    mark: null,
    claims: 0,
    read: async () => record.mark,
    claim: async (mark) => {
      record.claims += 1;
      record.mark ??= mark;
      return record.mark;
    },
  };
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const open = () => markVolumes(createDirectoryVolumes({ root }), root, record);
const markIn = (folder: string) => readFile(join(folder, MARK_FILE), "utf8").then((s) => s.trim());

/** Every way to volumes, each of which has to refuse. */
function everyWay() {
  const volumes = open();
  const { signal } = new AbortController();
  const admit = async () => undefined;
  const drained = async (items: AsyncIterable<unknown>) => {
    for await (const _ of items);
  };
  async function* nothing() {}
  return [
    () => volumes.directory(key),
    () => volumes.locate(key, "/"),
    () => drained(volumes.walk(key, "/", signal)),
    () => volumes.measure(key, signal),
    () => volumes.remove(key, signal),
    () => drained(volumes.files.list(key, "/", signal)),
    () => volumes.files.stat(key, "/"),
    () => volumes.files.read(key, "/f", { last: 1n }),
    () => volumes.files.write(key, "/f", nothing(), admit),
    () => volumes.files.makeDirectory(key, "/d"),
    () => volumes.files.copy(key, "/f", "/g", admit, signal),
    () => volumes.files.rename(key, "/f", "/g"),
    () => volumes.files.remove(key, "/f", true, signal),
  ];
}

test("folder and record are marked together, at first use", async () => {
  await open().files.makeDirectory(key, "/d");
  expect(await markIn(root)).toBe(record.mark);
  expect((await readdir(root)).sort()).toEqual([MARK_FILE, key.orgId]);
  expect((await open().files.stat(key, "/d")).kind).toBe("directory");
  expect(record.claims).toBe(1);
});

test("measuring and removing make nothing where there is nothing", async () => {
  const { signal } = new AbortController();
  const volumes = open();
  expect(await volumes.measure(key, signal)).toEqual({ bytes: 0n, entries: 0 });
  await volumes.remove(key, signal);
  expect([await readdir(parent), record.mark]).toEqual([[], null]);
});

test("many at once make one mark", async () => {
  await Promise.all(Array.from({ length: 8 }, (_, i) => open().files.makeDirectory(key, `/${i}`)));
  expect(await markIn(root)).toBe(record.mark);
  expect((await readdir(root)).filter((name) => name.startsWith(MARK_FILE))).toHaveLength(1);
});

test("a try that was broken off between folder and record is gone on with", async () => {
  await mkdir(root);
  await writeFile(join(root, MARK_FILE), "019a7c1e-0000-7000-8000-0000000000aa\n");
  await open().files.stat(key, "/");
  expect(record.mark).toBe("019a7c1e-0000-7000-8000-0000000000aa");
});

test.each(["is not there", "has no mark", "has another one's mark"])(
  "a folder that %s is refused in every way, and nothing is made",
  async (how) => {
    record.mark = "019a7c1e-0000-7000-8000-0000000000aa";
    if (how !== "is not there") await mkdir(root);
    if (how === "has another one's mark")
      await writeFile(join(root, MARK_FILE), "019a7c1e-0000-7000-8000-0000000000bb\n");
    for (const way of everyWay()) {
      await expect(way()).rejects.toThrow("not the folder that this installation's volumes are in");
      await expect(way()).rejects.toThrow(EngineTrouble);
      // It may reach a sandbox's owner.
      await expect(way()).rejects.not.toThrow(root);
    }
    const left = await readdir(root).catch(() => "nothing");
    const expected = { "is not there": "nothing", "has no mark": [] as string[] };
    expect(left).toEqual(expected[how as keyof typeof expected] ?? [MARK_FILE]);
  },
);

test("a disk that goes away, and comes back, is seen at once", async () => {
  const volumes = open();
  await volumes.files.makeDirectory(key, "/d");
  await rename(root, join(parent, "unmounted"));
  await mkdir(root);
  await expect(volumes.files.stat(key, "/d")).rejects.toThrow(EngineTrouble);
  expect(await readdir(root)).toEqual([]);
  await rm(root, { recursive: true });
  await rename(join(parent, "unmounted"), root);
  expect((await volumes.files.stat(key, "/d")).kind).toBe("directory");
});

test("a record that cannot be read refuses too", async () => {
  record.read = () => Promise.reject(new Error("the database is away"));
  await expect(open().files.stat(key, "/")).rejects.toThrow(EngineTrouble);
  await expect(open().measure(key, new AbortController().signal)).rejects.toThrow(EngineTrouble);
  expect(await readdir(parent)).toEqual([]);
});
