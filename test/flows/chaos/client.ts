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
  call: Call;
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

/** Does one thing after the other, each until it knows what came of it. */
export async function runClient(options: ClientOptions): Promise<void> {
  const { name, seed, signal, pauseMs } = options;
  const choices = randomFrom(`${seed}/choices/${name}`);
  const pauses = randomFrom(`${seed}/pauses/${name}`);
  const slots = [
    ...Array.from({ length: OWN_SLOTS }, (_, i) => emptySlot(`${name}-${i}`, false)),
    ...Array.from({ length: SHARED_SLOTS }, (_, i) => emptySlot(`shared-${i}`, true)),
  ];
  for (let operation = 1; !signal.aborted; operation += 1) {
    const choice = choose(choices, slots.length);
    const slot = slots[choice.slot] as Slot;
    const change = changeOf(choice, slot, operation, options.spec);
    if (change) await insist(options, operation, change, pauses);
    else await read(options, choice, slot);
    await sleep(pauses.between(0, pauseMs));
  }
}

async function insist(
  options: ClientOptions,
  operation: number,
  change: Change,
  pauses: Random,
): Promise<void> {
  while (!options.signal.aborted) {
    const answer = await options.call(change.method, change.path, change.body);
    const verdict = judge(answer, change.waits);
    change.learn(answer);
    write(options, operation, change, answer, verdict);
    if (verdict.final) return;
    await sleep(pauses.between(50, 400));
  }
}

function write(
  { journal, name: client }: ClientOptions,
  operation: number,
  { action, starts, target, rename: name }: Change,
  { status, code, body }: Answer,
  { outcome, strange }: Verdict,
): void {
  const made = status === 200 && typeof body.id === "string" ? body.id : undefined;
  const answer = `${status} ${code ?? ""}`.trim();
  const sandboxId = made ?? target;
  journal.add({
    client,
    operation,
    action,
    outcome,
    sandboxId,
    starts,
    name,
    answer,
    at: Date.now(),
  });
  journal.count(`answer ${answer}`);
  if (strange) journal.strange.push(`${client} #${operation} ${action}: ${strange}`);
}

async function read({ call, journal, name }: ClientOptions, { action }: Choice, slot: Slot) {
  const one = `/v1/sandboxes/by-name/${slot.name}`;
  const answer = await call("GET", action === "list" ? "/v1/sandboxes?limit=100" : one);
  journal.count(`${action} ${answer.status === 200 ? "answered" : "not answered"}`);
  const { strange } = judge(answer, false);
  if (strange) journal.strange.push(`${name} ${action}: ${strange}`);
}
