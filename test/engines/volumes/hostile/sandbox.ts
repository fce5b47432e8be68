import {
  linkSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/** What a sandbox's processes may do in a volume, over and over, until whoever started them is gone. */
const [, , volume = "", outside = "", trick = ""] = process.argv;

let rounds = 0;
const at = (...names: string[]) => join(volume, ...names);

/** Others are at it too: what fails is tried again in the next round. */
function attempt(act: () => void): void {
  try {
    act();
  } catch {}
}

function fill(directory: string): void {
  attempt(() => mkdirSync(join(directory, "sub"), { recursive: true }));
  attempt(() => writeFileSync(join(directory, "file"), "inside"));
  attempt(() => writeFileSync(join(directory, "sub", "file"), "inside"));
}

/** A directory becomes a link to the outside, and back. */
function swapDirectory(name: string): void {
  fill(at(name));
  attempt(() => renameSync(at(name), at(`${name}.aside`)));
  attempt(() => symlinkSync(outside, at(name)));
  attempt(() => unlinkSync(at(name)));
  attempt(() => renameSync(at(`${name}.aside`), at(name)));
  if (rounds % 50 === 0) attempt(() => rmSync(at(`${name}.aside`), { recursive: true }));
}

const TARGETS = ["directory", outside, "../../../../outside", "../..", "link", "missing", "."];

/** A link leads elsewhere each time, and is never gone. */
function swapLink(name: string): void {
  attempt(() => symlinkSync(TARGETS[rounds % TARGETS.length] ?? "", at(`${name}.next`)));
  attempt(() => renameSync(at(`${name}.next`), at(name)));
}

const SPECIAL = ["pipe", "device", "link-out"];

/** A file becomes a pipe, a device, a link to a file outside, a directory, and a file again. */
function swapFile(name: string): void {
  attempt(() => rmSync(at(name), { recursive: true, force: true }));
  if (rounds % 4 === 0) attempt(() => mkdirSync(at(name)));
  else attempt(() => linkSync(at("special", SPECIAL[rounds % 4] ?? ""), at(name)));
  attempt(() => rmSync(at(name), { recursive: true, force: true }));
  attempt(() => writeFileSync(at(name), "inside"));
}

/** Directories move into each other while somebody is in them. */
function move(): void {
  attempt(() => mkdirSync(at("moving", "a", "b", "c"), { recursive: true }));
  attempt(() => writeFileSync(at("moving", "a", "b", "c", "file"), "inside"));
  attempt(() => renameSync(at("moving", "a", "b"), at("b")));
  attempt(() => symlinkSync("../../..", at("moving", "a", "b")));
  attempt(() => unlinkSync(at("moving", "a", "b")));
  attempt(() => renameSync(at("b"), at("moving", "a", "b")));
}

const TRICKS: Record<string, () => void> = {
  directory: () => swapDirectory("directory"),
  deep: () => swapDirectory("tree/directory"),
  link: () => swapLink("link"),
  file: () => swapFile("file"),
  move,
};

process.on("disconnect", () => process.exit());
process.on("message", () => process.send?.(rounds));

/** Now and then it listens. */
function go(): void {
  for (let i = 0; i < 50; i++) {
    TRICKS[trick]?.();
    rounds += 1;
  }
  setImmediate(go);
}
go();
