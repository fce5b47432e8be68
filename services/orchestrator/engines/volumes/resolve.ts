import type { BigIntStats } from "node:fs";
import { fault, isCode } from "./faults.ts";
import { type Handle, lookAt } from "./handle.ts";
import { Ladder } from "./ladder.ts";
import type { OpenVolume } from "./open-volumes.ts";
import { isAbsolute, isUp, isWithin, namesIn } from "./paths.ts";
import { again, at, makeDirectoryIn, openPlace, readLink } from "./place.ts";

/** As Linux has it. */
const MOST_LINKS = 40;
/** Looks at a name, those in links included; a path has 2,048 at most. Nobody keeps us at it for long. */
const MOST_TURNS = 6_000;

export interface ResolveOptions {
  /** Whether a link at the end is followed; `never`: a link anywhere is a conflict. */
  links: "follow" | "stay" | "never";
  /** Whether missing parents are made; `later`: they will be, so what is in their way is a conflict now. */
  make?: boolean | "later";
  /** The place may not lie below this one. */
  notBelow?: readonly Buffer[];
}

/** Where a path leads. */
export interface Place extends AsyncDisposable {
  /** Holds it, and is closed with it; of the root, the root. */
  parent: Handle;
  /** Undefined: the root. */
  name: Buffer | undefined;
  /** From the root on, without links. */
  names: readonly Buffer[];
  /** What was there when it was looked at; undefined: nothing. */
  found: { stats: BigIntStats } | undefined;
}

/** One of which what is there is held as well. */
export interface HeldPlace extends Place {
  found: Held | undefined;
}

export interface Held {
  /** Stands for it, and opens nothing. */
  handle: Handle;
  stats: BigIntStats;
}

/**
 * Follows a path inside a volume, one name at a time.
 * @param path for what is said
 * @throws FileFault, or the kernel's error
 */
export function resolve(
  volume: OpenVolume,
  names: readonly Buffer[],
  path: string,
  options: ResolveOptions,
): Promise<Place> {
  return new Walk(volume, names, path, options, look).end();
}

/** The same, for what is to be opened, or to be gone on from. */
export function hold(
  volume: OpenVolume,
  names: readonly Buffer[],
  path: string,
  options: ResolveOptions,
): Promise<HeldPlace> {
  return new Walk(volume, names, path, options, take).end();
}

/** What a name of a directory stands for, or a directory itself. */
type Take<Found> = (directory: Handle, name: Buffer | undefined) => Promise<Found | undefined>;

type PlaceOf<Found> = Omit<Place, "found"> & { found: Found | undefined };

/** What `look` and `take` have in common. */
interface Seen {
  handle?: Handle;
  stats: BigIntStats;
}

const look: Take<{ stats: BigIntStats }> = async (directory, name) => {
  const stats = name ? await lookAt(at(directory, name)) : await directory.stat({ bigint: true });
  return stats && { stats };
};

const take: Take<Held> = async (directory, name) => {
  const handle = name ? await openIfThere(directory, name) : await again(directory);
  if (!handle) return undefined;
  try {
    return { handle, stats: await handle.stat({ bigint: true }) };
  } catch (error) {
    await handle.close();
    throw error;
  }
};

class Walk<Found extends Seen> {
  readonly #volume: OpenVolume;
  readonly #ladder: Ladder;
  readonly #path: string;
  readonly #options: ResolveOptions;
  /** The next one last. */
  readonly #ahead: Buffer[];
  readonly #take: Take<Found>;
  #links = 0;

  constructor(
    volume: OpenVolume,
    names: readonly Buffer[],
    path: string,
    options: ResolveOptions,
    take: Take<Found>,
  ) {
    this.#volume = volume;
    this.#ladder = new Ladder(volume.files, volume.dev);
    this.#path = path;
    this.#options = options;
    this.#ahead = names.toReversed();
    this.#take = take;
  }

  async end(): Promise<PlaceOf<Found>> {
    try {
      return await this.#end();
    } catch (error) {
      await this.#close();
      throw error;
    }
  }

  #close(): Promise<void> {
    return this.#ladder[Symbol.asyncDispose]();
  }

  async #end(): Promise<PlaceOf<Found>> {
    for (let turn = 0; turn < MOST_TURNS; turn++) {
      const place = await this.#turn();
      if (place) return place;
    }
    throw fault("missing", this.#path, "leads nowhere: it goes through too many names");
  }

  async #turn(): Promise<PlaceOf<Found> | undefined> {
    const name = this.#ahead.pop();
    if (name === undefined) return this.#whereItIs();
    if (isUp(name)) await this.#up();
    else if (this.#ahead.length === 0) return this.#last(name);
    else await this.#through(name);
    return undefined;
  }

  async #up(): Promise<void> {
    if (this.#ladder.names.length === 0) throw this.#outside();
    await this.#ladder.up();
  }

  /** The path has ended in a directory that it went through; it is looked at from its parent. */
  async #whereItIs(): Promise<PlaceOf<Found> | undefined> {
    const name = this.#ladder.names.at(-1);
    if (name === undefined) return this.#place(this.#volume.files, undefined);
    await this.#ladder.up();
    return this.#last(name);
  }

  async #last(name: Buffer): Promise<PlaceOf<Found> | undefined> {
    const parent = await this.#ladder.here();
    const place = await this.#place(parent, name);
    const { links } = this.#options;
    if (!place.found?.stats.isSymbolicLink() || links === "stay") return place;
    await place.found.handle?.close();
    await this.#follow(name);
    return undefined;
  }

  async #through(name: Buffer): Promise<void> {
    try {
      await this.#ladder.down(name);
    } catch (error) {
      if (isCode(error, "ENOTDIR")) await this.#follow(name);
      else if (isCode(error, "ENOENT") && this.#options.make === true) await this.#make(name);
      else throw error;
    }
  }

  async #make(name: Buffer): Promise<void> {
    this.#refuseBelow([...this.#ladder.names, name]);
    await makeDirectoryIn(await this.#ladder.here(), name);
    this.#ahead.push(name);
  }

  /** What is no directory is a link, or nothing that a path goes through. */
  async #follow(name: Buffer): Promise<void> {
    const target = await linkAt(await this.#ladder.here(), name);
    if (target === undefined) throw this.#inTheWay();
    if (this.#options.links === "never") throw fault("conflict", this.#path, "has a link in it");
    this.#links += 1;
    if (this.#links > MOST_LINKS)
      throw fault("missing", this.#path, "leads nowhere: it goes through too many links");
    if (isAbsolute(target)) throw this.#outside();
    this.#ahead.push(...namesIn(target).reverse());
  }

  async #place(parent: Handle, name: Buffer | undefined): Promise<PlaceOf<Found>> {
    const found = await this.#take(parent, name);
    try {
      const names = [...this.#ladder.names, ...(name ? [name] : [])];
      // What is mounted there is not of this volume.
      if (found?.stats.isDirectory() && found.stats.dev !== this.#volume.dev) throw this.#outside();
      // A link is followed yet: where it leads is what counts.
      if (!found?.stats.isSymbolicLink()) this.#refuseBelow(names);
      const close = async () => {
        await found?.handle?.close();
        await this.#close();
      };
      return { parent, name, names, found, [Symbol.asyncDispose]: close };
    } catch (error) {
      await found?.handle?.close();
      throw error;
    }
  }

  #refuseBelow(names: readonly Buffer[]): void {
    const { notBelow } = this.#options;
    if (notBelow && names.length > notBelow.length && isWithin(names, notBelow))
      throw fault("conflict", this.#path, "lies within what is to go there");
  }

  #outside() {
    return fault("outside", this.#path, "leaves the volume");
  }

  #inTheWay() {
    return this.#options.make
      ? fault("conflict", this.#path, "goes through something that is no directory")
      : fault("missing", this.#path, "does not exist");
  }
}

async function openIfThere(parent: Handle, name: Buffer): Promise<Handle | undefined> {
  try {
    return await openPlace(parent, name);
  } catch (error) {
    if (isCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** What a link says; undefined: it is none. */
async function linkAt(parent: Handle, name: Buffer): Promise<Buffer | undefined> {
  try {
    return await readLink(parent, name);
  } catch (error) {
    if (isCode(error, "EINVAL")) return undefined;
    throw error;
  }
}
