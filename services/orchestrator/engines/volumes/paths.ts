import { fault } from "./faults.ts";

/** Bytes, as Linux has it. */
const LONGEST_PATH = 4096;
const LONGEST_NAME = 255;

const SLASH = 0x2f;
const UP = Buffer.from("..");

/**
 * The names in a client's path, `..` among them. Pure.
 * @throws FileFault
 */
export function parsePath(path: string): Buffer[] {
  if (path.includes("\0") || !path.isWellFormed())
    throw fault("outside", path, "is no path: it holds what no name can");
  const names = namesIn(Buffer.from(path));
  if (Buffer.byteLength(path) > LONGEST_PATH || names.some((name) => name.length > LONGEST_NAME))
    throw fault("outside", path, "is too long");
  return names;
}

/** The names in a path or in what a link says, without empty ones and `.`. Pure. */
export function namesIn(path: Buffer): Buffer[] {
  const names: Buffer[] = [];
  for (let from = 0; from <= path.length; ) {
    const slash = path.indexOf(SLASH, from);
    const to = slash === -1 ? path.length : slash;
    const name = path.subarray(from, to);
    if (name.length > 0 && !(name.length === 1 && name[0] === 0x2e)) names.push(name);
    from = to + 1;
  }
  return names;
}

export function isUp(name: Buffer): boolean {
  return name.equals(UP);
}

export function isAbsolute(target: Buffer): boolean {
  return target[0] === SLASH;
}

/** Whether one place is another, or lies below it. Pure. */
export function isWithin(names: readonly Buffer[], above: readonly Buffer[]): boolean {
  return above.length <= names.length && above.every((name, i) => names[i]?.equals(name));
}

/** As clients see it. Pure. */
export function shownPath(names: readonly Buffer[]): string {
  return `/${names.map((name) => name.toString()).join("/")}`;
}
