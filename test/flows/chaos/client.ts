import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomFrom } from "../../support/random.ts";
import { type Change, changeOf } from "./changes.ts";
import { type Choice, choose } from "./choices.ts";
import type { Answer, Call } from "./http.ts";
import type { Journal } from "./journal.ts";
import { judge, type Verdict } from "./judge.ts";
import { emptySlot, type Slot } from "./slots.ts";

export interface ClientOptions {
  /** Unique; the names of its sandboxes begin with it. */
  name: string;
  /** One for each gateway. */
  calls: readonly Call[];
  seed: string;
  journal: Journal;
  /** What a sandbox is made of, beside its name. */
  spec: object;
  /** Longest pause between two operations. */
  pauseMs: number;
  signal: AbortSignal;
}

const OWN_SLOTS = 4;
/** Names that every client of an organization uses. */
const SHARED_SLOTS = 2;
/** How many of its changes have an idempotency key, how many of those are asked again, and how many tries are two at once. */
const KEYED = 0.8;
const REPEATED = 0.5;
const TWICE = 0.2;
const LIST = "/v1/sandboxes?limit=100";

/** Does one thing after the other, each until it knows what came of it. */
export async function runClient(options: ClientOptions): Promise<void> {
  const { name, seed, signal, pauseMs } = options;
  const choices = randomFrom(`${seed}/choices/${name}`);
  const pauses = randomFrom(`${seed}/pauses/${name}`);
  const tries = randomFrom(`${seed}/tries/${name}`);
  const slots = [
    ...Array.from({ length: OWN_SLOTS }, (_, i) => emptySlot(`${name}-${i}`, false)),
    ...Array.from({ length: SHARED_SLOTS }, (_, i) => emptySlot(`shared-${i}`, true)),
  ];
  for (let operation = 1; !signal.aborted; operation += 1) {
    const choice = choose(choices, slots.length);
    const slot = slots[choice.slot] as Slot;
    const change = changeOf(choice, slot, operation, options.spec);
    if (change) await insist(asking(options, operation, change, tries), pauses);
    else await read(options, choice, slot);
    await sleep(pauses.between(0, pauseMs));
  }
}

/** One change, until what came of it is known. */
export function change(
  options: ClientOptions,
  operation: number,
  wanted: Change,
  random: Random,
): Promise<void> {
  return insist(asking(options, operation, wanted, random), random);
}

/** One operation, of which every try may go to another gateway. */
interface Asking extends ClientOptions {
  operation: number;
  change: Change;
  tries: Random;
  idempotencyKey: string | undefined;
}

function asking(options: ClientOptions, operation: number, change: Change, tries: Random): Asking {
  const idempotencyKey = tries.chance(KEYED) ? `${options.name} #${operation}` : undefined;
  return { ...options, operation, change, tries, idempotencyKey };
}

/** Tries until the outcome is known; with a key then once more, to be told the same. */
async function insist(asking: Asking, pauses: Random): Promise<void> {
  const { signal, idempotencyKey, tries } = asking;
  let known = false;
  while (!signal.aborted) {
    const answered = await attempt(asking, known);
    if (answered && (known || idempotencyKey === undefined || !tries.chance(REPEATED))) return;
    known ||= answered;
    await sleep(pauses.between(50, 400));
  }
}

/** With a key sometimes twice at once. @returns whether there was an answer that is final */
async function attempt(asking: Asking, repeats: boolean): Promise<boolean> {
  const { idempotencyKey, tries } = asking;
  const twice = idempotencyKey !== undefined && tries.chance(TWICE);
  const finals = await Promise.all([
    send(asking, tries.pick(asking.calls), repeats),
    ...(twice ? [send(asking, tries.pick(asking.calls), repeats)] : []),
  ]);
  return finals.some(Boolean);
}

async function send(asking: Asking, call: Call, repeats: boolean): Promise<boolean> {
  const { change, idempotencyKey } = asking;
  const { method, path, body } = change;
  const answer = await call({ method, path, body, idempotencyKey });
  const verdict = judge(answer, change.waits, change.mounts);
  change.learn(answer);
  write(asking, answer, verdict, repeats);
  return verdict.final;
}

function write(
  { journal, name: client, operation, change, idempotencyKey }: Asking,
  { status, code, body, replayed }: Answer,
  { outcome, final, unkept, strange }: Verdict,
  repeats: boolean,
): void {
  const { action, starts, target, waits, rename: name } = change;
  const made = status === 200 && typeof body.id === "string" ? body.id : undefined;
  const answer = `${status} ${code ?? ""}`.trim();
  journal.add({
    client,
    operation,
    action,
    outcome,
    sandboxId: made ?? target,
    starts,
    name,
    idempotencyKey,
    waits,
    repeats,
    replayed,
    ...(final && !unkept && { body: JSON.stringify(body) }),
    answer,
    at: Date.now(),
  });
  journal.count(`answer ${answer}${replayed ? " replayed" : ""}`);
  if (strange) journal.strange.push(`${client} #${operation} ${action}: ${strange}`);
}

async function read({ calls, journal, name }: ClientOptions, { action }: Choice, slot: Slot) {
  const one = `/v1/sandboxes/by-name/${slot.name}`;
  const [call] = calls;
  const answer = await call?.({ method: "GET", path: action === "list" ? LIST : one });
  if (!answer) return;
  journal.count(`${action} ${answer.status === 200 ? "answered" : "not answered"}`);
  const { strange } = judge(answer, false);
  if (strange) journal.strange.push(`${name} ${action}: ${strange}`);
}
