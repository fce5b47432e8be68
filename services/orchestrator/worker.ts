import { seldom } from "../../runtime/seldom.ts";
import { type Coalesced, coalesce } from "./coalesce.ts";
import type { LeadingContext } from "./context.ts";
import { endRun } from "./domain/end-run.ts";
import { observe, stopUnwanted } from "./domain/observe.ts";
import { Orphans } from "./domain/orphans.ts";
import { EngineTrouble, EngineUnavailable, type Instance } from "./engines/engine.ts";
import type { Leading } from "./orchestrator.ts";
import { inRunSpan } from "./run-span.ts";
import { Starts } from "./starts.ts";
import { type Kind, Tasks } from "./tasks.ts";
import { NOTED_SECS } from "./volumes/changes.ts";

/** What is due sooner has a timer of its own. */
const SWEEP_MS = 1_000;
/** A look costs five statements whatever it finds: where hints come by the hundred it finds more at once. */
const LOOK_REST_MS = 10;
const OBSERVE_MS = 5_000;
const OBSERVE_AGAIN_MS = 1_000;
const OBSERVE_AFTER_HINT_MS = 50;

/**
 * Works on everything that is due, a sandbox at a time and many sandboxes at once, for as long as
 * this orchestrator leads. Level-triggered: every look starts from the rows and the engine's list,
 * so nothing is lost with the process.
 */
export class Worker {
  readonly #ctx: LeadingContext;
  readonly #tasks: Tasks;
  readonly #starts: Starts;
  readonly #orphans = new Orphans();
  readonly #looking: Coalesced;
  readonly #observing: Coalesced;
  /** Whether the engine answered when it was last asked; undefined: it was not asked yet. */
  #answers: boolean | undefined;
  #observedAt: Date | undefined;
  #stopped = false;
  #nextLook: NodeJS.Timeout | undefined;
  #nextObservation: NodeJS.Timeout | undefined;
  #hinted: NodeJS.Timeout | undefined;

  constructor(ctx: LeadingContext) {
    this.#ctx = ctx;
    this.#tasks = new Tasks(
      () => this.look(),
      (kind, sandboxId, err) => this.#failed(kind, sandboxId, err),
    );
    this.#starts = new Starts(ctx, this.#tasks);
    this.#looking = coalesce(
      () => this.#look(),
      seldom((err, unsaid) => ctx.log.warn({ err, ...unsaid }, "could not look for work")),
      LOOK_REST_MS,
    );
    this.#observing = coalesce(
      () => this.#observe(),
      seldom((err, unsaid) =>
        ctx.log.warn({ err, ...unsaid }, "could not compare runs with the engine"),
      ),
    );
  }

  start(): void {
    this.#observing.call();
    // The engine's answer makes the first look; without one it comes by itself.
    this.#lookIn(SWEEP_MS);
  }

  /** Starts no further work, ends waiting starts, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#nextLook);
    clearTimeout(this.#nextObservation);
    clearTimeout(this.#hinted);
    await Promise.all([this.#tasks.stop(), this.#looking.stop(), this.#observing.stop()]);
  }

  leading(): Leading {
    const { epoch } = this.#ctx;
    return { epoch, observedAt: this.#observedAt, underWay: this.#tasks.underWay() };
  }

  /** Looks for due work now; calls while it looks become one more look. */
  look(): void {
    this.#looking.call();
  }

  /** Compares with the engine soon; many hints become one comparison. */
  observeSoon(): void {
    if (this.#stopped) return;
    this.#hinted ??= setTimeout(() => {
      this.#hinted = undefined;
      this.#observing.call();
    }, OBSERVE_AFTER_HINT_MS);
  }

  async #look(): Promise<void> {
    this.#lookIn(SWEEP_MS);
    await this.#dropUnwanted();
    const { destroyed, ends, placed, queued, nextMs } = await this.#ctx.store.glance();
    if (nextMs !== null && nextMs < SWEEP_MS) this.#lookIn(nextMs);
    if (destroyed && this.#answers !== false) await this.#removeDestroyed();
    if (ends) await this.#endRuns();
    if (queued && (await this.#starts.expire(this.#answers))) this.look();
    if (placed && this.#answers === false) await this.#starts.putBack();
    if (!this.#answers) return;
    if (placed) await this.#starts.resume();
    if (queued && (await this.#starts.place())) this.look();
  }

  #lookIn(ms: number): void {
    clearTimeout(this.#nextLook);
    if (this.#stopped) return;
    this.#nextLook = setTimeout(() => this.look(), Math.max(0, Math.ceil(ms)));
  }

  #observeIn(ms: number): void {
    clearTimeout(this.#nextObservation);
    if (this.#stopped) return;
    this.#nextObservation = setTimeout(() => this.#observing.call(), ms);
  }

  async #dropUnwanted(): Promise<void> {
    const starting = this.#tasks.starting();
    if (starting.length === 0) return;
    for (const id of await this.#ctx.store.listUnwanted(starting)) this.#tasks.abort(id);
  }

  async #removeDestroyed(): Promise<void> {
    const { store, engine, reports } = this.#ctx;
    const limit = this.#tasks.room("remove");
    if (limit <= 0) return;
    for (const { id, mounts } of await store.listDestroyed(limit, this.#tasks.busy("remove")))
      this.#tasks.begin("remove", id, async () => {
        await engine.remove(id);
        if (mounts) await store.noteMountsOf(id, NOTED_SECS);
        // Not applied: another leads by now.
        return (await reports.removed(id)) ? "done" : "rest";
      });
  }

  async #endRuns(): Promise<void> {
    const limit = this.#tasks.room("end");
    if (limit <= 0) return;
    const { store, limits } = this.#ctx;
    const { stopTimeoutSecs } = limits;
    const busy = this.#tasks.busy("end");
    const withoutEngine = this.#answers === false;
    for (const run of await store.listEnds({ limit, busy, stopTimeoutSecs, withoutEngine }))
      this.#tasks.begin("end", run.sandboxId, () =>
        inRunSpan("end run", run, () => endRun(this.#ctx, run)),
      );
  }

  #failed(kind: Kind, sandboxId: string, err: unknown): void {
    this.#ctx.log.warn(
      { err, sandbox_id: sandboxId },
      "work on a sandbox did not succeed; trying again",
    );
    // No use to try the next start before the engine has been asked.
    if (kind !== "start" || !(err instanceof EngineUnavailable) || err instanceof EngineTrouble)
      return;
    this.#answers = false;
    this.observeSoon();
  }

  async #observe(): Promise<void> {
    this.#observeIn(OBSERVE_MS);
    const { engine, limits, log } = this.#ctx;
    const found = await observe(this.#ctx, this.#list, (id) => this.#tasks.has(id));
    this.#observedAt = new Date();
    // Only now, for what came up while it was away has its room before anything else is placed.
    const back = !this.#answers;
    this.#answers = true;
    for (const machine of found.unwanted)
      this.#tasks.begin("end", machine.sandboxId, () => stopUnwanted(this.#ctx, machine));
    for (const sandboxId of this.#orphans.due(found.unknown, limits.orphanDelaySecs * 1_000)) {
      log.warn({ sandbox_id: sandboxId }, "removing a machine of a sandbox that nobody knows");
      this.#tasks.begin("remove", sandboxId, async () => {
        await engine.remove(sandboxId);
        return "done";
      });
    }
    if (found.changed || back) this.look();
  }

  /** The one call by which it is known whether the engine answers. */
  readonly #list = async (): Promise<Instance[]> => {
    try {
      return await this.#ctx.engine.list();
    } catch (error) {
      this.#answers = false;
      this.#observeIn(OBSERVE_AGAIN_MS);
      throw error;
    }
  };
}
