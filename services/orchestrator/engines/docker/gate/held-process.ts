import { constants } from "node:fs";
import { type FileHandle, open, readFile, readlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** In a process's mask while it waits at the gate; see gate-amd64.s. */
const SIGURG = 1n << 22n;
const POLL_MS = 2;

/**
 * A process as /proc shows it, by a handle that stays with it: once it has ended nothing more is found,
 * also where another process has been given its number.
 */
export class HostProcess {
  readonly #handle: FileHandle;
  readonly pid: number;

  private constructor(handle: FileHandle, pid: number) {
    this.#handle = handle;
    this.pid = pid;
  }

  /** @returns undefined where there is none */
  static async open(pid: number): Promise<HostProcess | undefined> {
    try {
      const flags = constants.O_RDONLY | constants.O_DIRECTORY;
      return new HostProcess(await open(`/proc/${pid}`, flags), pid);
    } catch {
      return undefined;
    }
  }

  /** @throws Error where there is none */
  static async of(pid: number): Promise<HostProcess> {
    const found = await HostProcess.open(pid);
    if (!found)
      throw new Error("a container's processes are not among those that this program sees");
    return found;
  }

  /** Of its directory in /proc, for a child that is to reach it. */
  get fd(): number {
    return this.#handle.fd;
  }

  /** @throws Error where it has ended */
  read(name: string): Promise<Buffer> {
    return readFile(this.#path(name));
  }

  /** @throws Error where it has ended */
  link(name: string): Promise<string> {
    return readlink(this.#path(name));
  }

  /** Whether it belongs to this container: a number that another namespace counts is somebody else's here. */
  async isIn(containerId: string): Promise<boolean> {
    return (await this.read("cgroup")).includes(containerId);
  }

  /** Whether it is this gate, and waits. */
  async isHeldBy(gate: Buffer): Promise<boolean> {
    const blocked = /^SigBlk:\s*([0-9a-f]+)$/m.exec((await this.read("status")).toString())?.[1];
    if (blocked === undefined || (BigInt(`0x${blocked}`) & SIGURG) === 0n) return false;
    return this.runs(gate);
  }

  /** Whether this is its program. @throws Error where it has ended */
  async runs(gate: Buffer): Promise<boolean> {
    // No more than that: a sandbox's own program may be of any size.
    const file = await open(this.#path("exe"));
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(gate.length + 1), 0);
      return buffer.subarray(0, bytesRead).equals(gate);
    } finally {
      await file.close();
    }
  }

  /** The number of its parent. */
  async parent(): Promise<number> {
    return Number(/^PPid:\s*(\d+)$/m.exec((await this.read("status")).toString())?.[1]);
  }

  /** The numbers of the processes that it has started. */
  async children(): Promise<number[]> {
    const text = (await this.read(`task/${this.pid}/children`)).toString().trim();
    return text === "" ? [] : text.split(" ").map(Number);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  #path(name: string): string {
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }
}

/** Waits until it holds, for so long at most. @returns whether it did */
export async function becomes(isSo: () => Promise<boolean>, ms: number): Promise<boolean> {
  const until = performance.now() + ms;
  while (!(await isSo())) {
    if (performance.now() > until) return false;
    await sleep(POLL_MS);
  }
  return true;
}
