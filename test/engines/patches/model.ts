import type {
  Entry,
  Files,
} from "../../../services/orchestrator/engines/docker/patches/overlay.ts";
import type { TarEntry } from "../../../services/orchestrator/engines/docker/write-tar.ts";
import type { Patch } from "../../../services/orchestrator/engines/engine.ts";

/** A file system in memory: absolute path without links -> what is there. */
export type Model = Map<string, ModelNode>;
export type ModelNode =
  | { kind: "directory"; mode: number; uid: number }
  | { kind: "file"; mode: number; uid: number; content: string }
  | { kind: "link"; target: string };

export class Refused extends Error {}

export function filesOf(model: Model): Files {
  return {
    async look(path): Promise<Entry | undefined> {
      const node = model.get(path);
      return node?.kind === "link" ? node : node && { kind: node.kind };
    },
    async ownership(path) {
      const node = model.get(path);
      if (!node || node.kind === "link") throw new Error(`${path} has no owner`);
      return { mode: node.mode, uid: node.uid, gid: node.uid };
    },
    async read(path) {
      const node = model.get(path);
      if (node?.kind !== "file") throw new Error(`${path} is no file`);
      return Buffer.from(node.content);
    },
  };
}

function removeTree(model: Model, path: string): void {
  for (const known of [...model.keys()])
    if (known === path || known.startsWith(`${path}/`)) model.delete(known);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** What the daemon does with an archive: it makes room for each entry, but for a directory that is one already. */
export function untar(model: Model, entries: readonly TarEntry[]): void {
  for (const { header, content } of entries) {
    const path = `/${header.name}`;
    if (parentOf(path) !== "" && model.get(parentOf(path))?.kind !== "directory")
      throw new Error(`${path} comes before its parent`);
    const keeps = header.type === "directory" && model.get(path)?.kind === "directory";
    if (!keeps) removeTree(model, path);
    const owned = { mode: (header.mode ?? 0) & 0o7777, uid: header.uid ?? 0 };
    if (header.type === "directory") model.set(path, { kind: "directory", ...owned });
    else if (header.type === "symlink")
      model.set(path, { kind: "link", target: header.linkname ?? "" });
    else
      model.set(path, {
        kind: "file",
        content: String(Buffer.concat(content.filter((part) => Buffer.isBuffer(part)))),
        ...owned,
      });
  }
}

export function removeAll(model: Model, removals: readonly { path: string }[]): void {
  for (const { path } of removals) {
    if (!model.has(path)) throw new Error(`${path} is not there to be removed`);
    removeTree(model, path);
  }
}

/** Applies a patch at once, as somebody at a shell of the sandbox would. @throws Refused */
export function applyAtOnce(model: Model, patch: Patch): void {
  switch (patch.kind) {
    case "text": {
      const { content, mode } = patch;
      const node = { kind: "file", content, mode: mode ?? 0o644, uid: 0 } as const;
      place(model, patch.path, patch.replace, node);
      break;
    }
    case "symlink":
      place(model, patch.link, patch.replace, { kind: "link", target: patch.target });
      break;
    case "mkdir": {
      const path = realPath(model, patch.path, true);
      const node = model.get(path);
      if (node && node.kind !== "directory") throw new Refused();
      if (!node) makeDirectories(model, path);
      const made = model.get(path);
      if (made?.kind === "directory") made.mode = patch.mode ?? made.mode;
      break;
    }
    case "remove":
      removeTree(model, realPath(model, patch.path, false));
      break;
    case "append": {
      const node = model.get(realPath(model, patch.path, true));
      if (node?.kind !== "file") throw new Refused();
      node.content += patch.content;
      break;
    }
    default:
      throw new Error(`the model knows no ${patch.kind}`);
  }
}

function place(model: Model, path: string, replace: boolean, node: ModelNode): void {
  const real = realPath(model, path, false);
  makeDirectories(model, parentOf(real));
  if (model.has(real) && !replace) throw new Refused();
  removeTree(model, real);
  model.set(real, node);
}

function makeDirectories(model: Model, path: string): void {
  if (path === "") return;
  makeDirectories(model, parentOf(path));
  const node = model.get(path);
  if (node && node.kind !== "directory") throw new Refused();
  if (!node) model.set(path, { kind: "directory", mode: 0o755, uid: 0 });
}

function realPath(model: Model, path: string, followLast: boolean, links = 0): string {
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  let at = "";
  for (const [i, name] of names.entries()) {
    if (name === "..") {
      at = parentOf(at);
      continue;
    }
    const node = model.get(`${at}/${name}`);
    if (node?.kind !== "link" || (i === names.length - 1 && !followLast)) {
      at = `${at}/${name}`;
      continue;
    }
    if (links >= 40) throw new Refused();
    const base = node.target.startsWith("/") ? "" : at;
    const rest = [base, node.target, ...names.slice(i + 1)].join("/");
    return realPath(model, rest, followLast, links + 1);
  }
  if (at === "") throw new Refused();
  return at;
}
