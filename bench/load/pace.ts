import { setTimeout as sleep } from "node:timers/promises";
import type { Reply } from "./call.ts";
import { type Kind, nextKind, OPERATIONS } from "./mix.ts";
import type { Context } from "./operations.ts";
import type { Results } from "./results.ts";

interface Pace {
  /** Operations that fall due each second. */
  rate: number;
  /** Operations under way at once, at most. */
  connections: number;
  forMs: number;
}

/**
 * Begins operations at a steady rate, whatever the answers take, for as long as there is room for one more. An operation that
 * begins late counts from when it was due: a server that stalls is not asked less for it.
 */
export async function work(context: Context, results: Results, { rate, connections, forMs }: Pace) {
  const began = performance.now();
  const total = Math.floor((forMs / 1_000) * rate);
  let next = 0;
  const worker = async () => {
    while (next < total) {
      const due = began + (next++ * 1_000) / rate;
      const early = due - performance.now();
      if (early > 0) await sleep(early);
      results.latestMs = Math.max(results.latestMs, performance.now() - due);
      await one(context, results, due);
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  return { tookMs: performance.now() - began };
}

/** Of what there is nothing to do it with, a read is done instead. */
async function one(context: Context, results: Results, due: number): Promise<void> {
  let kind: Kind = nextKind(context.world);
  let reply = OPERATIONS[kind](context);
  if (!reply) {
    kind = "quotas";
    reply = OPERATIONS[kind](context);
  }
  results.add(kind, ...(await outcome(reply as Promise<Reply>, due)));
}

async function outcome(reply: Promise<Reply>, due: number): Promise<[number, string | undefined]> {
  const { status, reason, body } = await reply;
  const error =
    status === 200 ? undefined : `${status || "none"} ${reason}${body?.error?.code ?? ""}`;
  return [performance.now() - due, error];
}
