import { type BigIntStats, close, fstat, lstat, open } from "node:fs";
import { promisify } from "node:util";
import { isCode } from "./faults.ts";

/** An open file or directory; Node's own FileHandle is one too. */
export interface Handle extends AsyncDisposable {
  /** Below 0 once it is closed. */
  readonly fd: number;
  stat(options: { bigint: true }): Promise<BigIntStats>;
  close(): Promise<void>;
}

const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat);
const statPath = promisify(lstat);

/** For what is opened only to be looked at, or to be named by: Node's takes more than twice the time. */
export async function openHandle(path: string | Buffer, flags: number): Promise<Handle> {
  return new Descriptor(await openFd(path, flags));
}

/** What lies at a path, a link itself; undefined: nothing. */
export async function lookAt(path: string | Buffer): Promise<BigIntStats | undefined> {
  try {
    return await statPath(path, { bigint: true });
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

class Descriptor implements Handle {
  #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  get fd(): number {
    return this.#fd;
  }

  stat(options: { bigint: true }): Promise<BigIntStats> {
    return statFd(this.#fd, options);
  }

  async close(): Promise<void> {
    const fd = this.#fd;
    // The number may stand for something else as soon as it is given back.
    this.#fd = -1;
    if (fd >= 0) await closeFd(fd);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
