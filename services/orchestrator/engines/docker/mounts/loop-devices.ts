import type { Identity } from "./places.ts";
import { runProgram } from "./run-program.ts";

/** A block device of the host that is a file's content. */
export interface LoopDevice {
  /** Such as `/dev/loop3`. */
  path: string;
  major: number;
  minor: number;
  /** Both in one, as stat shows it. */
  number: bigint;
  /** The file behind it. */
  image: Identity;
  /** Where that was when it was attached, or is by now; as the kernel shows it. */
  file: string;
  readonly: boolean;
  /** It is detached when its last user is gone. */
  autoclear: boolean;
}

const COLUMNS = "NAME,AUTOCLEAR,RO,BACK-INO,BACK-MAJ:MIN,MAJ:MIN,BACK-FILE";

/** All that the host has, whoever attached them. @throws Error */
export async function listLoops(): Promise<LoopDevice[]> {
  const args = ["--list", "--raw", "--noheadings", "--output", COLUMNS];
  return (await losetup(args)).split("\n").filter(Boolean).flatMap(parseLoop);
}

/** A line of the list; none where its device was detached meanwhile. Pure. */
export function parseLoop(line: string): LoopDevice[] {
  const cells = line.split(" ").map((cell) => unescaped(cell).trim());
  const [path = "", autoclear, readonly, ino = "", of = "", own = "", file = ""] = cells;
  const [major, minor] = numbersOf(own);
  const [ofMajor, ofMinor] = numbersOf(of);
  if ([major, minor, ofMajor, ofMinor].some(Number.isNaN) || !/^\d+$/.test(ino)) return [];
  const image = { dev: deviceNumber(ofMajor, ofMinor), ino: BigInt(ino) };
  const flags = { readonly: readonly === "1", autoclear: autoclear === "1" };
  return [{ path, major, minor, number: deviceNumber(major, minor), image, file, ...flags }];
}

function numbersOf(pair: string): [number, number] {
  const [major, minor] = /^(\d+):(\d+)$/.exec(pair)?.slice(1).map(Number) ?? [];
  return [major ?? Number.NaN, minor ?? Number.NaN];
}

// Byte by byte, so that what is escaped in the middle of a character comes out whole.
function unescaped(text: string): string {
  const bytes = Buffer.from(text).toString("latin1");
  const plain = bytes.replace(/\\x([0-9a-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
  return Buffer.from(plain, "latin1").toString();
}

// As the C library puts them together.
function deviceNumber(major: number, minor: number): bigint {
  const [high, low] = [BigInt(major), BigInt(minor)];
  return (
    (low & 0xffn) | ((high & 0xfffn) << 8n) | ((low & ~0xffn) << 12n) | ((high & ~0xfffn) << 32n)
  );
}

/** @param file a path that nobody else can change @returns the path of the device @throws Error */
export async function attachLoop(file: string, readonly: boolean): Promise<string> {
  const flags = readonly ? ["--read-only"] : [];
  return (await losetup(["--find", "--show", "--direct-io=off", ...flags, file])).trim();
}

/** Now, or once its last user is gone; one that is detached already is fine. @throws Error */
export async function detachLoop(path: string): Promise<void> {
  const { code, err } = await runProgram("losetup", ["--detach", path]);
  if (code !== 0 && !/No such device/.test(err)) throw failure(code, err);
}

async function losetup(args: readonly string[]): Promise<string> {
  const { code, out, err } = await runProgram("losetup", args);
  if (code !== 0) throw failure(code, err);
  return out;
}

function failure(code: number | null, err: string): Error {
  const said = err.trim().replace(/^losetup: /, "");
  return new Error(`losetup: ${said || `ended with ${code}`}`);
}
