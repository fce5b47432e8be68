import { text } from "node:stream/consumers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { archiveOf } from "../../../services/orchestrator/engines/docker/patches/archive.ts";
import { planPatches } from "../../../services/orchestrator/engines/docker/patches/plan.ts";
import { writeTar } from "../../../services/orchestrator/engines/docker/write-tar.ts";
import { EngineFailure, type Patch } from "../../../services/orchestrator/engines/engine.ts";
import {
  applyAtOnce,
  filesOf,
  type Model,
  type ModelNode,
  Refused,
  removeAll,
  untar,
} from "./model.ts";

const dir = (mode = 0o755): ModelNode => ({ kind: "directory", mode, uid: 0 });
const file = (content: string, mode = 0o644, uid = 0): ModelNode => ({
  kind: "file",
  content,
  mode,
  uid,
});
const link = (target: string): ModelNode => ({ kind: "link", target });
const disk = (nodes: Record<string, ModelNode>): Model => new Map(Object.entries(nodes));
const stepsOf = (patches: readonly Patch[]) =>
  patches.map((patch, i) => ({ label: `patches[${i}]`, patch }));

async function applied(model: Model, patches: readonly Patch[]): Promise<Model> {
  const overlay = await planPatches(stepsOf(patches), filesOf(model));
  const { entries, removals } = await archiveOf(overlay);
  const after = new Map(structuredClone([...model]));
  untar(after, entries);
  removeAll(after, removals);
  return after;
}

const write = (path: string, content: string, rest: object = {}): Patch => ({
  kind: "text",
  path,
  content,
  mode: null,
  replace: false,
  ...rest,
});

describe("a plan of patches", () => {
  it.each<[string, Record<string, ModelNode>, Patch[], Record<string, ModelNode>]>([
    [
      "makes parents and keeps modes, 0 and setuid too",
      {},
      [write("/a/b", "1", { mode: 0 }), write("/a/c", "2", { mode: 0o4755 })],
      { "/a": dir(), "/a/b": file("1", 0), "/a/c": file("2", 0o4755) },
    ],
    [
      "takes a file's bytes from base64",
      {},
      [{ kind: "file", path: "/f", content: "aGk=", mode: null, replace: false }],
      { "/f": file("hi") },
    ],
    [
      "replaces a tree with a file, and a file with a tree",
      { "/t": dir(), "/t/x": file("old"), "/f": file("old") },
      [
        write("/t", "new", { replace: true }),
        { kind: "remove", path: "/f" },
        { kind: "mkdir", path: "/f/g", mode: 0o700 },
      ],
      { "/t": file("new"), "/f": dir(), "/f/g": dir(0o700) },
    ],
    [
      "does away with what was in a directory that is made again",
      { "/t": dir(), "/t/x": file("old"), "/t/y": dir(), "/t/y/z": file("old") },
      [
        { kind: "remove", path: "/t" },
        { kind: "mkdir", path: "/t", mode: null },
        write("/t/y", "new"),
      ],
      { "/t": dir(), "/t/y": file("new") },
    ],
    [
      "removes nothing that has gone already with what was around it",
      { "/t": dir(), "/t/x": file("old") },
      [
        { kind: "remove", path: "/t" },
        write("/t/x", "new"),
        { kind: "remove", path: "/t/x" },
        write("/t/y", "new"),
      ],
      { "/t": dir(), "/t/y": file("new") },
    ],
    [
      "takes a path with a slash at its end for the same path",
      { "/d": dir(), "/l": link("d") },
      [write("/l/", "new", { replace: true }), { kind: "remove", path: "/d/" }],
      { "/l": file("new") },
    ],
    [
      "follows links on the way, not the last, from the disk's own root",
      { "/usr": dir(), "/usr/bin": dir(), "/bin": link("/../usr/bin"), "/l": link("/usr") },
      [write("/bin/x", "1"), write("/l", "2", { replace: true })],
      {
        "/usr": dir(),
        "/usr/bin": dir(),
        "/usr/bin/x": file("1"),
        "/bin": link("/../usr/bin"),
        "/l": file("2"),
      },
    ],
    [
      "appends through a link, several times, and keeps owner and mode",
      { "/f": file("1", 0o600, 7), "/l": link("f") },
      [
        { kind: "append", path: "/l", content: "2" },
        { kind: "append", path: "/f", content: "3" },
      ],
      { "/f": file("123", 0o600, 7), "/l": link("f") },
    ],
    [
      "leaves a directory that is there as it is, but for a mode that is asked for",
      { "/d": dir(0o1777), "/d/x": file("1") },
      [
        { kind: "mkdir", path: "/d", mode: null },
        { kind: "mkdir", path: "/d", mode: 0o750 },
      ],
      { "/d": dir(0o750), "/d/x": file("1") },
    ],
    [
      "removes what is there and minds nothing that is not",
      { "/d": dir(), "/d/x": file("1"), "/f": file("2") },
      [
        { kind: "remove", path: "/d/x" },
        { kind: "remove", path: "/d/x" },
        { kind: "remove", path: "/f/under/a/file" },
        { kind: "remove", path: "/none" },
      ],
      { "/d": dir(), "/f": file("2") },
    ],
  ])("%s", async (_, before, patches, after) => {
    const all = await applied(disk(before), patches);
    expect(Object.fromEntries(all)).toEqual(after);
  });

  it.each<[string, Record<string, ModelNode>, Patch]>([
    ['"/f" is there already; it needs replace: true', { "/f": file("") }, write("/f", "")],
    ['"/f" is there already; it needs replace: true', { "/f": link("none") }, write("/f", "")],
    ['"/f" is there already; it needs replace: true', { "/f": dir() }, write("/f", "")],
    ['"/f" is no directory', { "/f": file("") }, write("/f/g", "")],
    [
      '"/f" is there already, and is no directory',
      { "/f": file("") },
      { kind: "mkdir", path: "/f", mode: null },
    ],
    ['there is no "/f" to append to', {}, { kind: "append", path: "/f", content: "x" }],
    ['"/f" is no file to append to', { "/f": dir() }, { kind: "append", path: "/f", content: "x" }],
    [
      '"/a/b" leads through too many links',
      { "/a": link("c"), "/c": link("a") },
      write("/a/b", "x"),
    ],
    ["its path is too deep", {}, write("/a".repeat(300), "x")],
    ["its path has a name that is too long", {}, write(`/a/${"é".repeat(128)}/b`, "x")],
    ['"/l" leads to the root', { "/l": link("/") }, { kind: "mkdir", path: "/l", mode: 0o700 }],
  ])("%s", async (message, before, patch) => {
    const steps = stepsOf([{ kind: "mkdir", path: "/fine", mode: null }, patch]);
    const planned = planPatches(steps, filesOf(disk(before)));
    await expect(planned).rejects.toThrow(new EngineFailure(`patches[1]: ${message}`));
  });

  it("copies nothing where there is no host volume", async () => {
    const copy: Patch = { kind: "copy_dir", src: "/a", dst: "/b", replace: false };
    await expect(planPatches(stepsOf([copy]), filesOf(disk({})))).rejects.toThrow(
      new EngineFailure("patches[0].src: there is no host volume to copy from"),
    );
  });

  it("comes to the same as the patches one after the other", async () => {
    const property = fc.asyncProperty(
      arbitraryModel,
      fc.array(arbitraryPatch, { maxLength: 8 }),
      async (nodes, patches) => {
        const model = consistent(nodes);
        const expected = new Map(structuredClone([...model]));
        const refusedAt = patches.findIndex((patch) => !isApplied(expected, patch));
        if (refusedAt < 0) expect(await applied(model, patches)).toEqual(expected);
        else
          await expect(applied(model, patches)).rejects.toThrow(
            new RegExp(`^patches\\[${refusedAt}\\]: `),
          );
      },
    );
    await fc.assert(property, { numRuns: 2_000 });
  });
});

describe("the archive", () => {
  it("carries names and targets that a plain header has no room for", async () => {
    const name = `${"ä".repeat(60)}/${"b".repeat(180)}`;
    const content = [Buffer.alloc(700_000, 1), Buffer.alloc(0), Buffer.from("end")];
    const tar = writeTar([
      { header: { name, type: "file", mode: 0o644 }, content },
      { header: { name: "l", type: "symlink", linkname: "t".repeat(200) }, content: [] },
    ]);
    const bytes = await text(tar);
    expect(bytes).toContain(name);
    expect(bytes).toContain("t".repeat(200));
    expect(bytes).toContain("end");
  });
});

function isApplied(model: Model, patch: Patch): boolean {
  try {
    applyAtOnce(model, patch);
    return true;
  } catch (error) {
    if (error instanceof Refused) return false;
    throw error;
  }
}

const arbitraryPath = fc
  .array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 3 })
  .map((names) => `/${names.join("/")}`);
const arbitraryTarget = fc.oneof(arbitraryPath, fc.constantFrom("a", "../b", "..", "/", "c/a"));
const arbitraryMode = fc.constantFrom(null, 0, 0o600, 0o755);
const arbitraryPatch: fc.Arbitrary<Patch> = fc.oneof(
  fc.record({
    kind: fc.constant("text" as const),
    path: arbitraryPath,
    content: fc.constantFrom("1", "2"),
    mode: arbitraryMode,
    replace: fc.boolean(),
  }),
  fc.record({
    kind: fc.constant("symlink" as const),
    target: arbitraryTarget,
    link: arbitraryPath,
    replace: fc.boolean(),
  }),
  fc.record({ kind: fc.constant("mkdir" as const), path: arbitraryPath, mode: arbitraryMode }),
  fc.record({ kind: fc.constant("remove" as const), path: arbitraryPath }),
  fc.record({
    kind: fc.constant("append" as const),
    path: arbitraryPath,
    content: fc.constant("+"),
  }),
);
const arbitraryModel = fc.array(
  fc.tuple(
    arbitraryPath,
    fc.oneof(
      fc.constant(dir()),
      fc.constantFrom("x", "y").map((content) => file(content, 0o640, 5)),
      arbitraryTarget.map(link),
    ),
  ),
  { maxLength: 8 },
);

// Each has its parents, and they are directories.
function consistent(nodes: [string, ModelNode][]): Model {
  const model: Model = new Map();
  for (const [path, node] of nodes) {
    const names = path.split("/").slice(1, -1);
    const parents = names.map((_, i) => `/${names.slice(0, i + 1).join("/")}`);
    if (
      model.has(path) ||
      parents.some((at) => model.has(at) && model.get(at)?.kind !== "directory")
    )
      continue;
    for (const at of parents) if (!model.has(at)) model.set(at, dir());
    model.set(path, structuredClone(node));
  }
  return model;
}
