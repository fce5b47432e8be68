import { type Coalesced, coalesce } from "./coalesce.ts";
import type { OrchestratorContext } from "./context.ts";
import { converge } from "./domain/converge.ts";
import { observe, stopUnwanted } from "./domain/observe.ts";
import { Orphans } from "./domain/orphans.ts";
import { Tasks } from "./tasks.ts";

const SWEEP_MS = 1_000;
const OBSERVE_MS = 5_000;
const OBSERVE_AFTER_HINT_MS = 50;

/**
 * Works on everything that is due, a sandbox at a time and many sandboxes at once, for as long as
 * this orchestrator leads. Level-triggered: every look starts from the rows and the engine's list,
 * so nothing is lost with the process.
 */
export class Worker {
  readonly #ctx: OrchestratorContext;
  readonly #tasks: Tasks;
  readonly #orphans = new Orphans();
  readonly #looking: Coalesced;
  readonly #observing: Coalesced;
  readonly #timers: NodeJS.Timeout[] = [];
  #hinted: NodeJS.Timeout | undefined;

  constructor(ctx: OrchestratorContext) {
    this.#ctx = ctx;
    this.#tasks = new Tasks(
      () => this.look(),
      (sandboxId, err) =>
        ctx.log.warn({ err, sandboxId }, "work on a sandbox did not succeed; trying again"),
    );
    this.#looking = coalesce(
      () => this.#look(),
      (err) => ctx.log.warn({ err }, "could not look for work"),
    );
    this.#observing = coalesce(
      () => this.#observe(),
      (err) => ctx.log.warn({ err }, "could not compare runs with the engine"),
    );
  }

  start(): void {
    this.#timers.push(setInterval(this.#looking.call, SWEEP_MS));
    this.#timers.push(setInterval(this.#observing.call, OBSERVE_MS));
    this.#observing.call();
    this.look();
  }

  /** Starts no further work, ends waiting starts, and waits for what is under way. */
  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#hinted);
    await Promise.all([this.#tasks.stop(), this.#looking.stop(), this.#observing.stop()]);
  }

  /** Looks for due work now; calls while it looks become one more look. */
  look(): void {
    this.#looking.call();
  }

  /** Compares with the engine soon; many hints become one comparison. */
  observeSoon(): void {
    this.#hinted ??= setTimeout(() => {
      this.#hinted = undefined;
      this.#observing.call();
    }, OBSERVE_AFTER_HINT_MS);
  }

  async #look(): Promise<void> {
    await this.#dropUnwanted();
    await this.#removeDestroyed();
    await this.#workOnRuns("end");
    await this.#workOnRuns("start");
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
    for (const id of await store.listDestroyed(limit, this.#tasks.busy()))
      this.#tasks.begin("remove", id, async () => {
        await engine.remove(id);
        await reports.removed(id);
      });
  }

  async #workOnRuns(kind: "start" | "end"): Promise<void> {
    const limit = this.#tasks.room(kind);
    if (limit <= 0) return;
    const { store, limits } = this.#ctx;
    const runs = await store.listDue({ kind, limit, busy: this.#tasks.busy(), ...limits });
    for (const run of runs)
      this.#tasks.begin(kind, run.sandboxId, (signal) => converge(this.#ctx, run, signal));
  }

  async #observe(): Promise<void> {
    const { engine, limits, log } = this.#ctx;
    const { unwanted, unknown } = await observe(this.#ctx, (id) => this.#tasks.has(id));
    for (const machine of unwanted)
      this.#tasks.begin("end", machine.sandboxId, () => stopUnwanted(this.#ctx, machine));
    for (const sandboxId of this.#orphans.due(unknown, limits.orphanDelaySecs * 1_000)) {
      log.warn({ sandboxId }, "removing a machine of a sandbox that nobody knows");
      this.#tasks.begin("remove", sandboxId, () => engine.remove(sandboxId));
    }
  }
}
