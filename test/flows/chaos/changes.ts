import type { Choice } from "./choices.ts";
import { type Answer, holderOf } from "./http.ts";
import type { Action } from "./journal.ts";
import { empty, type Slot } from "./slots.ts";

const WAIT_SECS = 5;

/** A request that is to change something, to be sent until its outcome is known. */
export interface Change {
  action: Action;
  method: string;
  path: string;
  body?: object;
  /** It is answered when the sandbox runs, or has failed. */
  waits: boolean;
  /** A create that also starts. */
  starts: boolean;
  /** Id of the sandbox that it names. */
  target: string | undefined;
  /** The sandbox mounts a volume. */
  mounts?: boolean;
  /** The name that it gives. */
  rename?: string;
  /** Learns from an answer what has become of the slot. */
  learn(answer: Answer): void;
}

/** What a choice comes to as things are; undefined: nothing. */
export function changeOf(
  choice: Choice,
  slot: Slot,
  operation: number,
  spec: object,
): Change | undefined {
  const target = "byName" in choice && choice.byName ? undefined : slot.id;
  const path = target ? `/v1/sandboxes/${target}` : `/v1/sandboxes/by-name/${slot.name}`;
  const plain = { waits: false, starts: false, target, learn: goneWith404(slot) };
  switch (choice.action) {
    case "create":
      return create(choice, slot, spec);
    case "start": {
      const query = choice.wait ? waiting : "";
      return {
        ...plain,
        action: "start",
        method: "POST",
        path: `${path}/start${query}`,
        waits: choice.wait,
      };
    }
    case "stop":
      return { ...plain, action: "stop", method: "POST", path: `${path}/stop` };
    case "destroy":
      return { ...plain, action: "destroy", method: "DELETE", path, learn: goneWith404(slot, 200) };
    case "rename":
      return target ? rename(slot, target, `${slot.base}-r${operation}`) : undefined;
    default:
      return undefined;
  }
}

const waiting = `?wait_for=running&wait_timeout=${WAIT_SECS}`;

function create(choice: Choice & { action: "create" }, slot: Slot, spec: object): Change {
  const { start, ephemeral, limitSecs } = choice;
  const waits = start && choice.wait;
  const query = waits ? `${waiting}&start=true` : `?start=${start}`;
  const lifecycle = { ephemeral, max_duration_secs: limitSecs };
  return {
    action: "create",
    method: "POST",
    path: `/v1/sandboxes${query}`,
    body: { ...spec, name: slot.name, lifecycle },
    waits,
    starts: start,
    target: undefined,
    learn: (answer) => {
      if (slot.shared) return;
      // Taken by one of its own: the create before this one, whose answer was lost.
      const id = answer.status === 200 ? answer.body.id : holderOf(answer);
      if (typeof id === "string") slot.id = id;
    },
  };
}

function rename(slot: Slot, target: string, name: string): Change {
  return {
    action: "rename",
    method: "PATCH",
    path: `/v1/sandboxes/${target}`,
    body: { name },
    waits: false,
    starts: false,
    target,
    rename: name,
    learn: (answer) => {
      if (answer.status === 200) slot.name = name;
      goneWith404(slot)(answer);
    },
  };
}

function goneWith404(slot: Slot, alsoWith = 404) {
  return ({ status }: Answer) => {
    if (!slot.shared && (status === 404 || status === alsoWith)) empty(slot);
  };
}
