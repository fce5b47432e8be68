import type { Random } from "../../../support/random.ts";

/** One thing that a client does with one of its volumes; drawn from its seed alone, whatever the answers are. */
export type VolumeChoice = { slot: number } & (
  | { action: "put" | "overwrite"; size: number; insists: boolean }
  | { action: "make" | "read" | "list" | "remove" | "rename" | "mount" | "stop" }
  | { action: "start" | "unmount" | "delete" | "race" }
);

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
  const [size, insists] = [random.pick(SIZES), random.chance(0.7)];
  if (action === "put" || action === "overwrite") return { action, slot, size, insists };
  return { action, slot };
}
