import { lstatSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { FileFault } from "../../../services/orchestrator/engines/volume-store.ts";
import { createVolume } from "./support.ts";

/** What a volume holds, as a tree in memory. */
type Node = { kind: "file" } | { kind: "link"; target: string } | Directory;
interface Directory {
  kind: "directory";
  children: Map<string, Node>;
}

const MOST_LINKS = 40;

class Refused extends Error {}

/** Where a path leads, told in the simplest way there is: the names from the root, or why not. */
function modelled(root: Directory, path: string): string {
  let links = 0;
  const follow = (at: readonly string[], path: string): string[] => {
    if (path.startsWith("/") && at.length + links > 0) throw new Refused("outside");
    let here = [...at];
    for (const name of path.split("/").filter((name) => name !== "" && name !== ".")) {
      if (nodeAt(root, here)?.kind !== "directory") throw new Refused("missing");
      if (name !== "..") here.push(name);
      else if (here.pop() === undefined) throw new Refused("outside");
      const node = nodeAt(root, here);
      if (node?.kind !== "link") continue;
      here.pop();
      links += 1;
      if (links > MOST_LINKS) throw new Refused("missing");
      if (node.target.startsWith("/")) throw new Refused("outside");
      here = follow(here, node.target);
    }
    return here;
  };
  try {
    const names = follow([], path);
    return nodeAt(root, names) ? names.join("/") : "missing";
  } catch (error) {
    if (error instanceof Refused) return error.message;
    throw error;
  }
}

function nodeAt(root: Directory, names: readonly string[]): Node | undefined {
  let node: Node | undefined = root;
  for (const name of names) node = node?.kind === "directory" ? node.children.get(name) : undefined;
  return node;
}

function build(directory: Directory, path: string): void {
  for (const [name, node] of directory.children) {
    const at = join(path, name);
    if (node.kind === "file") writeFileSync(at, "x");
    else if (node.kind === "link") symlinkSync(node.target, at);
    else {
      mkdirSync(at);
      build(node, at);
    }
  }
}

const name = fc.constantFrom("a", "b", "c", "d");
const step = fc.oneof({ weight: 4, arbitrary: name }, fc.constantFrom("..", "..", ".", ""));
const path = fc.array(step, { minLength: 1, maxLength: 7 }).map((steps) => steps.join("/"));
const target = fc.oneof(
  { weight: 6, arbitrary: path.filter((path) => path !== "") },
  fc.constantFrom("/etc", "/", ".", ".."),
);

const { directory } = fc.letrec<{ directory: Directory; node: Node }>((tie) => ({
  node: fc.oneof(
    { maxDepth: 4 },
    { weight: 1, arbitrary: fc.constant({ kind: "file" as const }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("link" as const), target }) },
    { weight: 3, arbitrary: tie("directory") },
  ),
  directory: fc
    .array(fc.tuple(name, tie("node")), { maxLength: 4 })
    .map((children) => ({ kind: "directory" as const, children: new Map(children) })),
}));

it("leads where the model says, and is refused where it says", { timeout: 120_000 }, async () => {
  const { volumes, key, inside, allClosed } = await createVolume();
  const seen = new Map<string, number>();
  const outcomeOf = async (path: string) => {
    try {
      const { handle, kind } = await volumes.locate(key, path);
      await using _closed = handle;
      return { ino: (await handle.stat()).ino, kind };
    } catch (error) {
      if (error instanceof FileFault) return error.why;
      throw error;
    }
  };
  await fc.assert(
    fc.asyncProperty(
      directory,
      fc.array(path, { minLength: 5, maxLength: 20 }),
      async (tree, paths) => {
        build(tree, inside);
        for (const path of paths) {
          const wanted = modelled(tree, path);
          const kind = wanted === "missing" || wanted === "outside" ? wanted : "found";
          seen.set(kind, (seen.get(kind) ?? 0) + 1);
          const real = kind === "found" ? lstatSync(join(inside, wanted)) : undefined;
          const found = real && { ino: real.ino, kind: real.isFile() ? "file" : "directory" };
          expect(await outcomeOf(path), path).toEqual(found ?? wanted);
        }
        for (const name of tree.children.keys()) rmSync(join(inside, name), { recursive: true });
      },
    ),
    { numRuns: 300, endOnFailure: true },
  );
  // All three came up, many times.
  for (const kind of ["found", "missing", "outside"]) expect(seen.get(kind)).toBeGreaterThan(50);
  await allClosed();
});
