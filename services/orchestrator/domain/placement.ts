import type { Capacity } from "../engines/engine.ts";
import type { QueuedRun } from "../store.ts";

/** What is to become of the starts that were looked at; those that are nowhere have to be looked at again. */
export interface Placement {
  /** They have room, and their turn. */
  start: QueuedRun[];
  /** There is no room for them, and they have not been told yet. */
  wait: QueuedRun[];
  /** There never is: larger than the host. */
  refuse: { run: QueuedRun; why: string }[];
}

/** The room of a host: what it has, and what may be placed on it. */
export interface Host {
  has: Capacity;
  room: Capacity;
}

/** Pure. */
export function hostOf(
  has: Capacity,
  limits: { cpuOvercommit: number; memoryOvercommit: number },
): Host {
  const room = {
    vcpus: has.vcpus * limits.cpuOvercommit,
    memoryMib: has.memoryMib * limits.memoryOvercommit,
  };
  return { has, room };
}

/**
 * Decides in the order of `queue`. What fits is placed whatever waits before it, but one that has waited
 * for long holds the room that there is until it fits. Pure.
 * @param free room that is left; negative where more was placed than there is now
 * @param slots most that may be started now
 */
export function place(
  queue: readonly QueuedRun[],
  host: Host,
  free: Capacity,
  slots: number,
): Placement {
  const placement: Placement = { start: [], wait: [], refuse: [] };
  const left = { ...free };
  let held = false;
  for (const run of queue) {
    const why = tooLarge(run, host);
    if (why !== undefined) placement.refuse.push({ run, why });
    else if (!held && run.vcpus <= left.vcpus && run.memoryMib <= left.memoryMib) {
      left.vcpus -= run.vcpus;
      left.memoryMib -= run.memoryMib;
      if (placement.start.length < slots) placement.start.push(run);
    } else {
      if (!run.waiting) placement.wait.push(run);
      held ||= run.overdue;
    }
  }
  return placement;
}

// Without overcommit: a machine cannot use more than the host has, however much may be placed on it.
function tooLarge({ vcpus, memoryMib }: QueuedRun, { has, room }: Host): string | undefined {
  const most = {
    vcpus: Math.min(has.vcpus, room.vcpus),
    memoryMib: Math.min(has.memoryMib, room.memoryMib),
  };
  if (vcpus > most.vcpus)
    return `it asks for ${vcpus} vCPUs, more than the engine's whole host can give (${most.vcpus})`;
  if (memoryMib > most.memoryMib)
    return `it asks for ${memoryMib} MiB of memory, more than the engine's whole host can give (${Math.floor(most.memoryMib)} MiB)`;
  return undefined;
}

const MOST_TURNS = 1_000;

/** Whose turn it is: organizations that were served are behind those that were not. Only a memory, for fairness. */
export class Turns {
  /** Least recently served first. */
  readonly #served = new Set<string>();

  serve(orgId: string): void {
    this.#served.delete(orgId);
    this.#served.add(orgId);
    const [oldest] = this.#served;
    if (this.#served.size > MOST_TURNS && oldest !== undefined) this.#served.delete(oldest);
  }

  served(): string[] {
    return [...this.#served];
  }
}
