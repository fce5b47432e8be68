import type { Disk } from "./find-program.ts";

const MOST = 10_000;

/**
 * Remembers what the disks of images hold, which never changes: each look at a container's disk has the
 * daemon mount it, and most sandboxes run the same few programs.
 */
export class DiskMemory {
  readonly #known = new Map<string, { answer: unknown }>();

  /** @param disk of a container that has not run, so that it is still the image's */
  of(imageId: string, disk: Disk): Disk {
    return {
      stat: (path) => this.#once(`${imageId} stat ${path}`, () => disk.stat(path)),
      interpreter: (path) =>
        this.#once(`${imageId} interpreter ${path}`, () => disk.interpreter(path)),
    };
  }

  async #once<T>(key: string, look: () => Promise<T>): Promise<T> {
    const known = this.#known.get(key);
    // What is kept under a key is what a look under that key gave.
    if (known !== undefined) return known.answer as T;
    const answer = await look();
    if (this.#known.size >= MOST) this.#known.clear();
    this.#known.set(key, { answer });
    return answer;
  }
}
