import type { EventRow, Facts } from "../facts.ts";
import type { Attempt, Journal } from "../journal.ts";

/** The event that a change leaves; a create that starts leaves both. */
const EVENTS: Readonly<Record<Attempt["action"], string>> = {
  create: "sandbox_created",
  start: "sandbox_started",
  stop: "sandbox_stop_requested",
  rename: "sandbox_renamed",
  destroy: "sandbox_destroyed",
};

/**
 * What was acknowledged has left its event, what was refused none, and what is in doubt one at most. Each client has a
 * key of its own, so every event of a client is one that it asked for.
 */
export function exactlyOnce({ events }: Facts, journal: Journal): string[] {
  const attempts = onePerKey(journal.attempts);
  const asked = attempts.filter(({ action }) => action !== "rename").flatMap(expand);
  return [...counted(asked, events), ...renamed(attempts, events)];
}

/** All tries with one idempotency key ask for one effect, and who of them was told what came of it speaks for all. */
function onePerKey(attempts: readonly Attempt[]): Attempt[] {
  const keyed = attempts.filter(({ idempotencyKey }) => idempotencyKey !== undefined);
  const byKey = Map.groupBy(keyed, ({ idempotencyKey }) => idempotencyKey);
  const told = [...byKey.values()].flatMap((tries) => {
    const known = (["acked", "doubt", "refused"] as const).flatMap(
      (outcome) => tries.find((each) => each.body !== undefined && each.outcome === outcome) ?? [],
    );
    return known[0] ?? tries.find(({ outcome }) => outcome === "doubt") ?? tries[0] ?? [];
  });
  return [...attempts.filter((attempt) => !keyed.includes(attempt)), ...told];
}

interface Asked {
  client: string;
  type: string;
  sandboxId: string | undefined;
  outcome: Attempt["outcome"];
}

function expand({ client, action, outcome, sandboxId, starts }: Attempt): Asked[] {
  const types = starts ? [EVENTS[action], EVENTS.start] : [EVENTS[action]];
  return types.map((type) => ({ client, type, sandboxId, outcome }));
}

function counted(asked: readonly Asked[], events: readonly EventRow[]): string[] {
  const types = new Set(Object.values(EVENTS).filter((type) => type !== EVENTS.rename));
  const own = events.filter(({ client, type }) => client !== null && types.has(type));
  const clients = Map.groupBy([...asked, ...own], ({ client, type }) => `${client} ${type}`);
  return [...clients].flatMap(([key, all]) => {
    const wanted = all.filter((each): each is Asked => "outcome" in each);
    const left = all.filter((each): each is EventRow => !("outcome" in each));
    return [...perSandbox(key, wanted, left), ...inAll(key, wanted, left)];
  });
}

function inAll(key: string, asked: readonly Asked[], events: readonly EventRow[]): string[] {
  const acked = count(asked, "acked");
  const most = acked + count(asked, "doubt");
  if (events.length >= acked && events.length <= most) return [];
  return [
    `${key}: ${events.length} events, but ${acked} acknowledged and ${most - acked} in doubt`,
  ];
}

function perSandbox(key: string, asked: readonly Asked[], events: readonly EventRow[]): string[] {
  const ids = new Set([...asked, ...events].flatMap(({ sandboxId }) => sandboxId ?? []));
  // One that named its sandbox by name, and was not told which that was, may have been about any.
  const anywhere = asked.filter(({ sandboxId }) => sandboxId === undefined);
  const spare = count(anywhere, "doubt") + count(anywhere, "acked");
  return [...ids].flatMap((id) => {
    const here = asked.filter(({ sandboxId }) => sandboxId === id);
    const left = events.filter(({ sandboxId }) => sandboxId === id).length;
    const acked = count(here, "acked");
    if (left >= acked && left <= acked + count(here, "doubt") + spare) return [];
    return [`${key} of ${id}: ${left} events, but ${acked} acknowledged`];
  });
}

/** Every rename gives a name of its own; tries that found it given left nothing. */
function renamed(attempts: readonly Attempt[], events: readonly EventRow[]): string[] {
  const renames = attempts.filter(({ action }) => action === "rename");
  const byName = Map.groupBy(renames, ({ name }) => name);
  return [...byName].flatMap(([name, tries]) => {
    const left = events.filter(
      (event) => event.type === EVENTS.rename && event.name === name,
    ).length;
    const acked = count(tries, "acked") > 0;
    const least = acked ? 1 : 0;
    const most = acked || count(tries, "doubt") > 0 ? 1 : 0;
    return left >= least && left <= most ? [] : [`rename to ${name}: ${left} events`];
  });
}

function count(
  asked: readonly { outcome: Attempt["outcome"] }[],
  outcome: Attempt["outcome"],
): number {
  return asked.filter((each) => each.outcome === outcome).length;
}
