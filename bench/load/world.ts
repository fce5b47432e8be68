import type { Random } from "../../test/support/random.ts";

/** Settled states of a sandbox that a client may count on, and those on their way there. */
export interface Sandbox {
  id: string;
  name: string;
  status: string;
  /** An operation about it is under way: no other is begun. */
  busy: boolean;
}

export interface Volume {
  id: string;
  files: string[];
  busy: boolean;
}

/** What the load has made and not deleted yet, as far as answers told. */
export class World {
  readonly sandboxes = new Set<Sandbox>();
  readonly volumes = new Set<Volume>();
  readonly random: Random;
  #made = 0;

  constructor(random: Random) {
    this.random = random;
  }

  /** A name that is new. */
  name(): string {
    this.#made += 1;
    return `load-${this.#made}`;
  }

  /** One that nothing is done with, of some states; it is busy from now on. */
  takeSandbox(...states: string[]): Sandbox | undefined {
    return this.#take([...this.sandboxes].filter(({ status }) => states.includes(status)));
  }

  takeVolume(fits: (volume: Volume) => boolean = () => true): Volume | undefined {
    return this.#take([...this.volumes].filter(fits));
  }

  #take<T extends { busy: boolean }>(all: T[]): T | undefined {
    const free = all.filter(({ busy }) => !busy);
    if (free.length === 0) return undefined;
    const taken = this.random.pick(free);
    taken.busy = true;
    return taken;
  }
}
