import { spawn } from "node:child_process";
import { lstat, readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { FileFault, type VolumeKey } from "../volume-store.ts";
import { isCode } from "./faults.ts";
import type { Handle } from "./handle.ts";
import type { Layout } from "./layout.ts";
import { at } from "./place.ts";
import { doomedName } from "./remove-tree.ts";

const TIMEOUT_MS = 10_000;

const UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const BELOW_ROOT = new RegExp(
  `^/${UUID}/${UUID}/staging/removed-${UUID}\\.(?<pid>\\d+)\\.(?<start>\\d+)$`,
);

/** The process that gave a second name, by what /proc shows of it; its number alone may be another one's by now. */
export interface NameGiver {
  pid: number;
  start: string;
}

/** @param path from the root of all volumes on @returns undefined: this is no second name. Pure. */
export function nameGiverOf(path: string): NameGiver | undefined {
  const { pid, start } = BELOW_ROOT.exec(path)?.groups ?? {};
  return pid === undefined || start === undefined ? undefined : { pid: Number(pid), start };
}

export async function isAlive({ pid, start }: NameGiver): Promise<boolean> {
  return (await startOf(pid)) === start;
}

// Its 22nd field; the second may hold anything but ends with the last bracket.
async function startOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
}

/**
 * Gives a file a second name where no sandbox can change anything, for a program that takes paths only, and takes it away
 * afterwards. It may be gone earlier: who cleans up removes it as what a dead process has left.
 * @param file of this volume, opened as a place
 */
export async function withSecondName<T>(
  layout: Layout,
  key: VolumeKey,
  file: Handle,
  act: (path: string) => Promise<T>,
): Promise<T> {
  await using volume = await layout.open(key);
  const staging = await volume.staging();
  const { pid } = process;
  const name = Buffer.from(`${doomedName()}.${pid}.${await startOf(pid)}`);
  await link(file, staging, name.toString());
  try {
    const [lent, meant] = await Promise.all([
      lstat(at(staging, name), { bigint: true }),
      file.stat({ bigint: true }),
    ]);
    if (lent.ino !== meant.ino || lent.dev !== meant.dev)
      throw new Error("a file got the name of another one");
    return await act(join(layout.volume(key), "staging", name.toString()));
  } finally {
    await unlink(at(staging, name)).catch((error: unknown) => {
      if (!isCode(error, "ENOENT")) throw error;
    });
  }
}

// Node's own link does not follow what stands for a handle.
async function link(file: Handle, directory: Handle, name: string): Promise<void> {
  const child = spawn("ln", ["-L", "-T", "/proc/self/fd/3", `/proc/self/fd/4/${name}`], {
    stdio: ["ignore", "ignore", "pipe", file.fd, directory.fd],
    env: { PATH: process.env.PATH, LC_ALL: "C" },
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve(code));
  });
  const [code, said] = await Promise.all([ended, child.stderr ? text(child.stderr) : ""]);
  if (code === 0) return;
  if (/No such file/.test(said)) throw new FileFault("missing", "it was removed meanwhile");
  throw new Error(`a file could not be given a second name: ${said.trim()}`);
}
