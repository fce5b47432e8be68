import { randomUUID } from "node:crypto";
import type { OrchestratorContext } from "./context.ts";

const TTL_SECS = 5;
const EVERY_MS = 1_000;

/**
 * Keeps the lease of an engine: one orchestrator leads it, others stand by and take over within
 * seconds when it dies.
 * @param onLead called when the lease is taken
 * @param onLose called when it is lost, before anybody else can have it
 */
export function seekLeadership(
  ctx: OrchestratorContext,
  onLead: () => void,
  onLose: () => Promise<void>,
): { tried: Promise<void>; stop(): Promise<void> } {
  const holder = randomUUID();
  let leading = false;
  let heldUntil = 0;

  const claim = async () => {
    const asked = Date.now();
    const epoch = await ctx.store.holdLease({
      engine: ctx.engine.name,
      holder,
      ttlSecs: TTL_SECS,
      features: ctx.engine.features(),
      capacity: ctx.capacity() ?? { vcpus: 0, memoryMib: 0 },
    });
    if (epoch !== undefined) heldUntil = asked + TTL_SECS * 1_000;
    return epoch;
  };
  const beat = async () => {
    const epoch = await claim().catch((error: unknown) => {
      ctx.log.warn({ err: error }, "could not renew the engine's lease");
      return undefined;
    });
    if (epoch !== undefined && !leading) {
      leading = true;
      ctx.log.info({ engine: ctx.engine.name, epoch: Number(epoch) }, "leading the engine");
      onLead();
    } else if (leading && Date.now() + EVERY_MS >= heldUntil) {
      leading = false;
      ctx.log.warn({ engine: ctx.engine.name }, "lost the engine's lease");
      await onLose();
    }
  };

  let beating = beat();
  const tried = beating;
  const timer = setInterval(() => {
    beating = beating.then(beat);
  }, EVERY_MS);
  return {
    tried,
    stop: async () => {
      clearInterval(timer);
      await beating;
      if (leading) await onLose();
      leading = false;
      await ctx.store.releaseLease(ctx.engine.name, holder).catch((error: unknown) => {
        ctx.log.warn({ err: error }, "could not give the engine's lease back");
      });
    },
  };
}
