import type { Random } from "../../support/random.ts";

/** One thing that a client does; drawn from its seed alone, whatever the answers are. */
export type Choice = { slot: number } & (
  | {
      action: "create";
      start: boolean;
      wait: boolean;
      ephemeral: boolean;
      limitSecs: number | null;
    }
  | { action: "start"; wait: boolean; byName: boolean }
  | { action: "stop"; byName: boolean }
  | { action: "rename" }
  | { action: "destroy" }
  | { action: "get" }
  | { action: "list" }
);

const WEIGHTS = { create: 26, start: 18, stop: 18, destroy: 12, rename: 8, get: 8, list: 6 };

/** @param slots how many sandboxes a client has at most; each choice is about one of them */
export function choose(random: Random, slots: number): Choice {
  const slot = random.between(0, slots - 1);
  const action = random.weighted(WEIGHTS);
  // Drawn for every action, so that each choice takes as many numbers.
  const [one, two, three, four] = [random.next(), random.next(), random.next(), random.next()];
  switch (action) {
    case "create": {
      const limitSecs = four < 0.1 ? 1 + Math.floor(four * 20) : null;
      return { action, slot, start: one < 0.8, wait: two < 0.4, ephemeral: three < 0.1, limitSecs };
    }
    case "start":
      return { action, slot, wait: one < 0.4, byName: two < 0.3 };
    case "stop":
      return { action, slot, byName: one < 0.3 };
    default:
      return { action, slot };
  }
}
