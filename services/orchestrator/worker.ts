import type { OrchestratorContext } from "./context.ts";
import { converge } from "./domain/converge.ts";
import { observe } from "./domain/observe.ts";
import { EngineUnavailable } from "./engines/engine.ts";

const SWEEP_MS = 1_000;
const OBSERVE_MS = 5_000;
const PAUSE_MS = 1_000;
// Engine calls under way at once; more only makes each slower.
const MOST_AT_ONCE = 32;
const OBSERVE_AFTER_HINT_MS = 50;

/**
 * Works on everything that is due, a sandbox at a time and many sandboxes at once, for as long as
 * this orchestrator leads. Level-triggered: every look starts from the rows and the engine's list,
 * so nothing is lost with the process.
 */
export class Worker {
  readonly #ctx: OrchestratorContext;
  readonly #busy = new Map<string, AbortController>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #timers: NodeJS.Timeout[] = [];
  #observing: NodeJS.Timeout | undefined;
  #looking = false;
  #again = false;
  #pausedUntil = 0;
  #stopped = false;

  constructor(ctx: OrchestratorContext) {
    this.#ctx = ctx;
  }

  start(): void {
    this.#timers.push(setInterval(() => this.look(), SWEEP_MS));
    this.#timers.push(setInterval(() => this.#observe(), OBSERVE_MS));
    this.#observe();
    this.look();
  }

  /** Starts no further work, ends waiting starts, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#observing);
    for (const controller of this.#busy.values()) controller.abort();
    await Promise.allSettled(this.#underWay);
  }

  /** Looks for due work now; calls while it looks become one more look. */
  look(): void {
    if (this.#stopped) return;
    this.#again = true;
    if (!this.#looking) this.#track(this.#lookWhileAsked());
  }

  /** Compares with the engine soon; many hints become one comparison. */
  observeSoon(): void {
    this.#observing ??= setTimeout(() => {
      this.#observing = undefined;
      this.#observe();
    }, OBSERVE_AFTER_HINT_MS);
  }

  async #lookWhileAsked(): Promise<void> {
    this.#looking = true;
    try {
      while (this.#again && !this.#stopped) {
        this.#again = false;
        if (Date.now() >= this.#pausedUntil) await this.#lookOnce();
      }
    } catch (error) {
      this.#ctx.log.warn({ err: error }, "could not look for work");
    } finally {
      this.#looking = false;
    }
  }

  async #lookOnce(): Promise<void> {
    await this.#dropUnwanted();
    const { store, limits } = this.#ctx;
    const busy = [...this.#busy.keys()];
    const room = MOST_AT_ONCE - busy.length;
    if (room <= 0) return;
    for (const id of await store.listDestroyed(room, busy)) this.#work(id, () => this.#remove(id));
    const left = MOST_AT_ONCE - this.#busy.size;
    if (left <= 0) return;
    const runs = await store.listDue({ limit: left, busy: [...this.#busy.keys()], ...limits });
    for (const run of runs) this.#work(run.sandboxId, (signal) => converge(this.#ctx, run, signal));
  }

  async #dropUnwanted(): Promise<void> {
    if (this.#busy.size === 0) return;
    const unwanted = await this.#ctx.store.listUnwanted([...this.#busy.keys()]);
    for (const id of unwanted) this.#busy.get(id)?.abort();
  }

  async #remove(id: string): Promise<void> {
    await this.#ctx.engine.remove(id);
    await this.#ctx.reports.removed(id);
  }

  #work(sandboxId: string, task: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    this.#busy.set(sandboxId, controller);
    const done = task(controller.signal).then(
      () => void this.#busy.delete(sandboxId),
      (error: unknown) => this.#later(sandboxId, error),
    );
    this.#track(done.then(() => this.look()));
  }

  #track(task: Promise<void>): void {
    this.#underWay.add(task);
    void task.then(() => this.#underWay.delete(task));
  }

  // It stays due; a pause keeps a broken one from spinning.
  #later(sandboxId: string, error: unknown): void {
    if (error instanceof EngineUnavailable) this.#pausedUntil = Date.now() + PAUSE_MS;
    this.#ctx.log.warn(
      { err: error, sandboxId },
      "work on a sandbox did not succeed; trying again",
    );
    setTimeout(() => this.#busy.delete(sandboxId), PAUSE_MS);
  }

  #observe(): void {
    if (this.#stopped) return;
    const observed = observe(this.#ctx, (id) => this.#busy.has(id)).catch((error: unknown) => {
      this.#ctx.log.warn({ err: error }, "could not compare runs with the engine");
    });
    this.#track(observed);
  }
}
