import type { LeadingContext } from "./context.ts";
import { startFailed } from "./domain/end.ts";
import { hostOf, place, Turns } from "./domain/placement.ts";
import { startRun } from "./domain/start-run.ts";
import { inRunSpan } from "./run-span.ts";
import type { Tasks } from "./tasks.ts";

const MOST_REPORTS = 64;

/** Takes starts from the queue: which, in which order, and how many at once. */
export class Starts {
  readonly #ctx: LeadingContext;
  readonly #tasks: Tasks;
  readonly #turns = new Turns();

  constructor(ctx: LeadingContext, tasks: Tasks) {
    this.#ctx = ctx;
    this.#tasks = tasks;
  }

  /** Goes on with starts that were placed before, by another orchestrator for one. */
  async resume(): Promise<void> {
    const slots = this.#tasks.room("start");
    if (slots <= 0) return;
    const placed = await this.#ctx.store.listPlaced(slots, this.#tasks.busy("start"));
    await this.#begin(placed.map(({ sandboxId }) => sandboxId));
  }

  /** Gives starts that an engine had which does not answer back to the queue. */
  async putBack(): Promise<void> {
    const { store, reports } = this.#ctx;
    const placed = await store.listPlaced(MOST_REPORTS, this.#tasks.busy("start"));
    await Promise.all(placed.map((run) => reports.waiting(run, "scheduling")));
  }

  /**
   * Fails starts that were not placed in time.
   * @returns whether there may be more
   */
  async expire(engineAnswers: boolean | undefined): Promise<boolean> {
    const { store, reports, limits } = this.#ctx;
    const { queueTimeoutSecs: secs } = limits;
    const busy = this.#tasks.busy("start");
    const late = await store.listExpired(MOST_REPORTS, busy, secs);
    const why = engineAnswers ? "it could not be placed" : "the engine did not answer";
    const told = await Promise.all(
      late.map((run) => {
        const reason = run.waiting ? "the engine had no room" : why;
        return reports.ended(run, startFailed(`${reason} within ${secs} s`));
      }),
    );
    return told.includes(true);
  }

  /**
   * Begins what has room and its turn; tells others once that they wait.
   * @returns whether there may be more that were not looked at
   */
  async place(): Promise<boolean> {
    const { store, limits, reports } = this.#ctx;
    const slots = this.#tasks.room("start");
    const has = this.#ctx.capacity();
    if (slots <= 0 || !has) return false;
    const host = hostOf(has, limits);
    const taken = await store.sumPlaced(this.#tasks.starting());
    const free = {
      vcpus: host.room.vcpus - taken.vcpus,
      memoryMib: host.room.memoryMib - taken.memoryMib,
    };
    const busy = this.#tasks.busy("start");
    const served = this.#turns.served();
    const queue = await store.listQueue({ busy, free, each: slots, served });
    const { start, wait, refuse } = place(queue, host, free, slots);
    for (const { orgId } of start) this.#turns.serve(orgId);
    await this.#begin(start.map(({ sandboxId }) => sandboxId));
    const told = await Promise.all([
      ...wait.map((run) => reports.waiting(run, "insufficient_capacity")),
      ...refuse.map(({ run, why }) => reports.ended(run, startFailed(why))),
    ]);
    return told.includes(true);
  }

  async #begin(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return;
    const runs = await this.#ctx.store.readStarts(ids, this.#ctx.limits.startTimeoutSecs);
    for (const run of runs)
      this.#tasks.begin("start", run.sandboxId, (signal) =>
        inRunSpan("start run", run, () => startRun(this.#ctx, run, signal)),
      );
  }
}
