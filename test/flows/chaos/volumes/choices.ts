import type { Random } from "../../../support/random.ts";

/** One thing that a client does with one of its volumes; drawn from its seed alone, whatever the answers are. */
export type VolumeChoice = { slot: number } & (
  | ({ action: "put" | "overwrite"; insists: boolean } & Sending)
  | { action: "make" | "read" | "list" | "remove" | "rename" | "mount" | "stop" }
  | { action: "start" | "unmount" | "delete" | "race" }
);

/** How a file is sent. */
export interface Sending {
  size: number;
  /** Whether its length is named first. */
  declared: boolean;
  /** Hangs up when so much of it is sent; null: sends all of it. */
  breaksAt: number | null;
}

const WEIGHTS = {
  put: 26,
  overwrite: 8,
  read: 12,
  list: 5,
  remove: 7,
  rename: 7,
  make: 10,
  mount: 9,
  stop: 5,
  start: 5,
  unmount: 6,
  delete: 7,
  race: 6,
};
const SIZES = [0, 1, 1_000, 65_536, 200_001, 3_000_000];

export function chooseForVolume(random: Random, slots: number): VolumeChoice {
  const slot = random.between(0, slots - 1);
  const action = random.weighted(WEIGHTS);
  // Drawn for every action, so that each choice takes as many numbers.
  const [size, insists, declared] = [random.pick(SIZES), random.chance(0.7), random.chance(0.5)];
  const [breaks, part] = [random.chance(0.25), random.next()];
  const breaksAt = breaks && size > 0 ? Math.floor(size * part) : null;
  if (action === "put" || action === "overwrite")
    return { action, slot, size, insists: insists && breaksAt === null, declared, breaksAt };
  return { action, slot };
}
