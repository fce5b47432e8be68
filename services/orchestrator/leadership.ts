import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { seldom } from "../../runtime/seldom.ts";
import { coalesce } from "./coalesce.ts";
import type { OrchestratorContext } from "./context.ts";

const TTL_MS = 5_000;
const EVERY_MS = 1_000;
/** How long before its end a lease that was not renewed is given up. */
const MARGIN_MS = 1_000;

/** What to do when leadership comes and goes. */
export interface Leader {
  /** The lease is taken, with this epoch. */
  lead(epoch: bigint): void;
  /** It is lost, and nobody else has it yet; it is asked for again when this is done. */
  lose(): Promise<void>;
}

/**
 * Keeps the lease of an engine: one orchestrator leads it, others stand by and take over within
 * seconds when it dies.
 */
export function seekLeadership(
  ctx: OrchestratorContext,
  { lead, lose }: Leader,
): { tried: Promise<void>; stop(): Promise<void> } {
  const holder = randomUUID();
  const engine = ctx.engine.name;
  let expiry: NodeJS.Timeout | undefined;
  let leading: bigint | undefined;
  let losing: Promise<void> = Promise.resolve();

  const resign = () => {
    if (!expiry) return;
    clearTimeout(expiry);
    expiry = undefined;
    losing = lose();
  };
  const expire = () => {
    ctx.log.warn({ engine }, "lost the engine's lease");
    resign();
  };
  const beat = async () => {
    await losing;
    // By the process's own clock, which nobody sets, and from before the lease was written.
    const asked = performance.now();
    const epoch = await within(TTL_MS, claim(ctx, holder));
    const left = asked + TTL_MS - MARGIN_MS - performance.now();
    // Another epoch: somebody led in between, so what was begun before is no longer ours to report.
    if (expiry && epoch !== leading) expire();
    else if (epoch !== undefined && left > 0) hold(epoch, left);
    if (epoch === undefined) await standBy();
  };
  const hold = (epoch: bigint, left: number) => {
    const isNew = !expiry;
    clearTimeout(expiry);
    // Of its own, for a database that does not answer must not hold this up.
    expiry = setTimeout(expire, left);
    leading = epoch;
    if (!isNew) return;
    ctx.log.info({ engine, epoch: Number(epoch) }, "leading the engine");
    lead(epoch);
  };
  let behind: string | undefined;
  const standBy = async () => {
    const other = (await ctx.store.findOther(engine))?.engine;
    if (other !== undefined && other !== behind)
      ctx.log.warn(
        { engine, leads: other },
        "another engine leads this database, which can have but one: standing by until it is gone",
      );
    behind = other;
  };

  const first = Promise.withResolvers<void>();
  const beats = coalesce(
    () => beat().finally(first.resolve),
    seldom((err, unsaid) => ctx.log.warn({ err, ...unsaid }, "could not renew the engine's lease")),
  );
  beats.call();
  const timer = setInterval(beats.call, EVERY_MS);
  return {
    tried: first.promise,
    stop: async () => {
      clearInterval(timer);
      await beats.stop();
      resign();
      await losing;
      await ctx.store.releaseLease(engine, holder).catch((err: unknown) => {
        ctx.log.warn({ err }, "could not give the engine's lease back");
      });
    },
  };
}

function claim(ctx: OrchestratorContext, holder: string): Promise<bigint | undefined> {
  return ctx.store.holdLease({
    engine: ctx.engine.name,
    holder,
    ttlSecs: TTL_MS / 1_000,
    features: ctx.engine.features(),
    capacity: ctx.capacity() ?? { vcpus: 0, memoryMib: 0 },
  });
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = sleep(ms, undefined, { ref: false }).then(() => {
    throw new Error(`the database did not answer within ${ms} ms`);
  });
  return Promise.race([work, late]);
}
