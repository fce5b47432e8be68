/** A sandbox as a client last knew it. */
export interface Slot {
  /** The name that it is created with. */
  base: string;
  /** The name that it has now. */
  name: string;
  /** Other clients use it too, so nothing is known of it. */
  shared: boolean;
  /** Undefined: there is none, as far as the client knows. */
  id: string | undefined;
}

export function emptySlot(base: string, shared: boolean): Slot {
  return { base, name: base, shared, id: undefined };
}

/** It is gone. */
export function empty(slot: Slot): void {
  slot.id = undefined;
  slot.name = slot.base;
}
