import type { OrchestratorContext } from "./context.ts";
import { seekLeadership } from "./leadership.ts";
import type { Kind } from "./tasks.ts";
import { keepVolumes } from "./volumes/keep.ts";
import { Worker } from "./worker.ts";

const WATCH_AGAIN_MS = 1_000;

/** What one that leads is at. */
export interface Leading {
  /** Of its lease. */
  epoch: bigint;
  /** When it last compared rows and machines; undefined: not yet. */
  observedAt: Date | undefined;
  /** How many sandboxes it works on. */
  underWay: Record<Kind, number>;
}

/** A running orchestrator. */
export interface Orchestrator {
  /** The lease has been asked for once, so that a start may be admitted. */
  ready: Promise<void>;
  /** There may be work. */
  hint(): void;
  /** Undefined: it stands by. */
  leading(): Leading | undefined;
  /** Gives up the lease and waits for what is under way; machines go on. */
  stop(): Promise<void>;
}

export function startOrchestrator(ctx: OrchestratorContext): Orchestrator {
  let worker: Worker | undefined;
  let volumes: { stop(): Promise<void> } | undefined;
  const stopping = new AbortController();
  const lose = async () => {
    const lost = [worker?.stop(), volumes?.stop()];
    worker = undefined;
    volumes = undefined;
    await Promise.all(lost);
  };
  const lead = (epoch: bigint) => {
    worker = new Worker({ ...ctx, epoch, reports: ctx.reportsOf(epoch) });
    worker.start();
    volumes = keepVolumes(ctx);
  };
  const leadership = seekLeadership(ctx, { lead, lose });
  void watchEngine(ctx, () => worker?.observeSoon(), stopping.signal);
  return {
    ready: leadership.tried,
    hint: () => worker?.look(),
    leading: () => worker?.leading(),
    stop: async () => {
      stopping.abort();
      await leadership.stop();
      await ctx.engine.close();
    },
  };
}

// Events are hints; what was missed while the engine was gone is found by the next comparison.
async function watchEngine(
  ctx: OrchestratorContext,
  onChange: () => void,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const _ of ctx.engine.watch(signal)) onChange();
    } catch (error) {
      if (!signal.aborted) ctx.log.warn({ err: error }, "lost sight of the engine's events");
    }
    if (signal.aborted) return;
    await new Promise((go) => setTimeout(go, WATCH_AGAIN_MS).unref());
    onChange();
  }
}
