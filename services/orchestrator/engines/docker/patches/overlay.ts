import type { Buffer } from "node:buffer";
import type { Part } from "../write-tar.ts";

/** What is at a path, its links not followed. */
export type Entry =
  | { kind: "directory" }
  | { kind: "file" }
  | { kind: "link"; target: string }
  /** A device, a pipe, a socket. */
  | { kind: "other" };

/** Who may do what with a file or directory. */
export interface Ownership {
  /** Permission bits, to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
}

/** Read access to a disk as it is; no path here has links among its parents. */
export interface Files {
  /** Undefined: there is nothing. */
  look(path: string): Promise<Entry | undefined>;
  ownership(path: string): Promise<Ownership>;
  /** Undefined: it is too large. */
  read(path: string): Promise<Buffer | undefined>;
}

/** What is to be at a path. */
export type Change =
  /** `fresh`: nothing of what is there now stays in it. */
  | ({ kind: "directory"; fresh: boolean } & Ownership)
  | ({ kind: "file"; content: readonly Part[] } & Ownership)
  | { kind: "link"; target: string }
  /** `by` whose wish it is. */
  | { kind: "absent"; by: string };

interface Node {
  /** Undefined: as the disk has it; something further down is changed. */
  change: Change | undefined;
  children: Map<string, Node>;
}

/** A path as names from the root; empty: the root. */
export type Names = readonly string[];

export function toPath(names: Names): string {
  return `/${names.join("/")}`;
}

/** A disk with changes that are not made yet. */
export class Overlay {
  readonly #files: Files;
  readonly #root: Node = { change: undefined, children: new Map() };

  constructor(files: Files) {
    this.#files = files;
  }

  async look(names: Names): Promise<Entry | undefined> {
    const { node, covered } = this.#find(names);
    if (node?.change) return entryOf(node.change);
    return covered ? undefined : await this.#files.look(toPath(names));
  }

  /** What this overlay itself has at a path. */
  changeAt(names: Names): Change | undefined {
    return this.#find(names).node?.change;
  }

  /** Puts something in the place of whatever is there, with all that is in it. */
  put(names: Names, change: Change): void {
    this.#parentOf(names).set(names.at(-1) ?? "", { change, children: new Map() });
  }

  /** Changes a directory, and keeps what is in it. */
  alter(names: Names, change: Change & { kind: "directory" }): void {
    const siblings = this.#parentOf(names);
    const children = siblings.get(names.at(-1) ?? "")?.children ?? new Map();
    siblings.set(names.at(-1) ?? "", { change, children });
  }

  /** Every change that shows in the end, parents first; `over` is what the disk has there now. */
  async *changes(): AsyncGenerator<{ path: string; change: Change; over: Entry | undefined }> {
    yield* this.#changesIn(this.#root, [], false);
  }

  async *#changesIn(
    { children }: Node,
    at: Names,
    covered: boolean,
  ): AsyncGenerator<{ path: string; change: Change; over: Entry | undefined }> {
    for (const [name, node] of children) {
      const names = [...at, name];
      const path = toPath(names);
      if (node.change) {
        const over = covered ? undefined : await this.#files.look(path);
        yield { path, change: node.change, over };
      }
      yield* this.#changesIn(node, names, covered || covers(node.change));
    }
  }

  #find(names: Names): { node: Node | undefined; covered: boolean } {
    let node: Node | undefined = this.#root;
    let covered = false;
    for (const name of names) {
      covered ||= covers(node?.change);
      node = node?.children.get(name);
    }
    return { node, covered };
  }

  #parentOf(names: Names): Map<string, Node> {
    let node = this.#root;
    for (const name of names.slice(0, -1)) {
      const child = node.children.get(name) ?? { change: undefined, children: new Map() };
      node.children.set(name, child);
      node = child;
    }
    return node.children;
  }
}

// Nothing that the disk has below it shows any more.
function covers(change: Change | undefined): boolean {
  return change !== undefined && !(change.kind === "directory" && !change.fresh);
}

function entryOf(change: Change): Entry | undefined {
  if (change.kind === "absent") return undefined;
  return change.kind === "link" ? change : { kind: change.kind };
}
